"""The installation of a module's settings, at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import Settings
from tests.ledger.histories import empty
from tests.operations.rows import NOW

OpenAt: TypeAlias = Callable[[str], AbstractContextManager[Installation]]


@pytest.fixture
def open_at(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> OpenAt:
    """Opens the installation with a clock that stands still at that time (``2013-01-01T05:30Z``)."""

    def opened(time: str) -> AbstractContextManager[Installation]:
        monkeypatch.setenv("FALCON_CLOCK", time)
        return open_installation()

    return opened


@pytest.fixture(scope="module")
def opened(settings: Settings) -> Iterator[Installation]:
    """The installation of the module's settings; its clock stands still at ``NOW``."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_CLOCK", format_instant(NOW))
        with open_installation() as found:
            yield found


@pytest.fixture(scope="module")
def installed(opened: Installation, write_entities: Callable[[dict[str, str]], Path]) -> Callable[[str], Installation]:
    """The installation with these entities, and nothing else."""

    def install(entities: str) -> Installation:
        write_entities({"all.yaml": entities, "a.sql": "SELECT 1"})
        opened.forget_entities()
        empty(opened.ledger.engine)
        return opened

    return install


def installation_of(files: dict[str, str], at: str, *, emptied: bool = True) -> Callable[..., Any]:
    """A fixture: these definitions at that time; the ledger is empty, or as the last test left it."""

    @pytest.fixture
    def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
        write_entities(files)
        with open_at(at) as found:
            if emptied:
                empty(found.ledger.engine)
            yield found

    return installation
