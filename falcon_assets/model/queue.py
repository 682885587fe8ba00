"""Queues of a location: how much of their work runs at once, and who may use them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from falcon_assets.model.base import Declaration, NonEmpty
from falcon_assets.model.shared import Acl

_Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]


class Queue(Declaration):
    """A queue, which processes name."""

    jobs: _Count | None = None
    """How many instances of all its processes run at once; omitted: no limit."""
    cores: _Count | None = None
    """How many cores their runs have at once, by the ``execute`` endpoints of clusters and by ``spark.*`` properties;
    omitted: no limit. A run that needs more than that runs alone."""
    priority: Annotated[int, Field(ge=-100, le=100, strict=True)] = 0
    """Among runs that wait in Dagster's queue, those of higher priority start first."""
    users: tuple[NonEmpty, ...] = ()
    """The owners (``acl.owner``) whose processes may use it; omitted: all."""

    def is_for(self, acl: Acl | None) -> bool:
        """Whether a process with that ``acl`` may use it."""
        return not self.users or (acl is not None and acl.owner in self.users)
