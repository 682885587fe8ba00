"""What ``make up`` tells of instances while it runs: what succeeded and what did not, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

import click
import sqlalchemy
from sqlalchemy import Engine

from falcon_assets.history.platform.postgres import unreachable
from falcon_assets.instances.store.known_instances import ended_since, newest_event
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import InstanceState, KeyedInstance
from falcon_assets.settings import Settings

_SHOWN = 3
"""Of the instances of a process that end in the same way at the same time, and of the lines of a reason."""
_WORDS = {
    InstanceState.SUCCEEDED: "succeeded",
    InstanceState.FAILED: "failed",
    InstanceState.TIMED_OUT: "timed out",
    InstanceState.KILLED: "was stopped",
}


@dataclass
class News:
    """Tells each end once, from call to call.

    Attributes:
        engine: The database with the ledger, which the sensors bring up to date.
        settings: Whose clock is told.
    """

    engine: Engine
    settings: Settings
    _seen: int = field(init=False)
    _away: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        with self.engine.connect() as connection:
            self._seen = newest_event(connection)

    def tell(self) -> None:
        """Prints what ended since the last time; once, that the database is away, and once, that it is back."""
        try:
            with self.engine.connect() as connection:
                found = ended_since(connection, self._seen)
        except sqlalchemy.exc.DBAPIError as error:
            if not self._away:
                self._say(f"{unreachable(str(self.engine.url), error)}; everything goes on by itself when it is back")
            self._away = True
            return
        if self._away:
            self._say("the database is back")
        self._away = False
        self._seen = max((one.event_id for one in found), default=self._seen)
        for line in in_words(found):
            self._say(line)

    def _say(self, what: str) -> None:
        click.echo(f"{format_instant(self.settings.now())}: {what}")


def in_words(ended: Iterable[KeyedInstance]) -> Iterator[str]:
    """A line for all instances of a process that succeeded, a line and its cause for each of the others."""

    def alike(one: KeyedInstance) -> tuple[str, str, str]:
        return one.process, one.cluster, one.state.value

    for (process, cluster, _), group in groupby(sorted(ended, key=lambda one: (*alike(one), one.nominal)), alike):
        ours = list(group)
        what = _WORDS[ours[0].state]
        if ours[0].state is InstanceState.SUCCEEDED:
            again = " (not the first attempt)" if any(one.attempt > 1 for one in ours) else ""
            yield f"{process} on {cluster} {_times([one.nominal for one in ours])} {what}{again}"
            continue
        for one in ours[:_SHOWN]:
            yield f"{process} on {cluster} {format_instant(one.nominal)} {what}: {_cause(one.reason)}"
        if len(ours) > _SHOWN:
            more = ours[_SHOWN:]
            yield f"{process} on {cluster} {_times([one.nominal for one in more])} {what} as well"


def _times(nominals: list[datetime]) -> str:
    if len(nominals) == 1:
        return format_instant(nominals[0])
    return f"{len(nominals)} instances from {format_instant(nominals[0])} to {format_instant(nominals[-1])}"


def _cause(reason: str) -> str:
    lines = [line for line in reason.splitlines() if line.strip()]
    return "\n  ".join([*lines[:_SHOWN], *(["..."] if len(lines) > _SHOWN else [])])
