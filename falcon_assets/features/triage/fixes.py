"""Commands that fix a cause, for one instance or a range of instances."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.features.triage.known import Data, Work
from falcon_assets.instances.rules.waiting import InputInvalid
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.reasons import Reason


@dataclass(frozen=True)
class Fix:
    """A command for instances, or, without ``cluster``, for an entity; ``state`` limits a range of instances."""

    words: tuple[str, ...]
    cluster: str | None = None
    state: str | None = None
    needs_end: bool = False

    def command(self, first: datetime, last: datetime) -> str:
        """Returns the command for the instances from ``first`` to ``last``, quoted for a shell."""
        if self.cluster is None:
            return shlex.join(self.words)
        said = [*self.words, "--start", format_instant(first)]
        if first != last or self.needs_end:
            said += ["--end", format_instant(last)]
        if first != last and self.state is not None:
            said += ["--status", self.state]
        return shlex.join([*said, "--cluster", self.cluster])


def rerun(work: Work, state: InstanceState) -> Fix:
    force = ("--force",) if state is InstanceState.SUCCEEDED else ()
    return Fix(("falcon", "instance", "rerun", work.workload, *force), work.cluster, state.value)


def resume_instance(work: Work) -> Fix:
    return Fix(("falcon", "instance", "resume", work.workload), work.cluster)


def schedule(entity: Feed | Process) -> Fix:
    return Fix(("falcon", "entity", "schedule", entity.name, "--kind", entity.kind))


def resume_entity(entity: Feed | Process) -> Fix:
    return Fix(("falcon", "entity", "resume", entity.name, "--kind", entity.kind))


def overrule(reason: Reason) -> Fix | None:
    """What is unchecked needs none: it is checked by itself."""
    if not isinstance(reason, InputInvalid):
        return None
    return Fix(tuple(shlex.split(reason.commands[-1])))


def collect(data: Data) -> Fix:
    return Fix(("falcon", "instance", "collect", data.feed), data.cluster, needs_end=True)
