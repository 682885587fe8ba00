"""Hooks of versions: what a job may be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from falcon_assets.operations.operation import Operation


@hookimpl
def job_operations() -> Sequence[type[Operation]]:
    from falcon_assets.features.versions.operations import RestoreInstance

    return [RestoreInstance]
