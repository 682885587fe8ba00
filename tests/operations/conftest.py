"""The installation of a module's settings, at any time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

import pytest

from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import Settings

OpenAt: TypeAlias = Callable[[str], AbstractContextManager[Installation]]


@pytest.fixture
def open_at(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> OpenAt:
    """Opens the installation with a clock that stands still at that time (``2013-01-01T05:30Z``)."""

    def opened(time: str) -> AbstractContextManager[Installation]:
        monkeypatch.setenv("FALCON_CLOCK", time)
        return open_installation()

    return opened
