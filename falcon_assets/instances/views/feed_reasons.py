"""Reasons why an instance of a feed is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.hooks import hooks, merged
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.views.feed_writers import writers_of
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.reason import Reason


@dataclass(frozen=True)
class RemovedByRetention(Reason):
    action: str
    why: str
    archive: str | None

    def __str__(self) -> str:
        done = f"was archived to {self.archive}" if self.archive else "was deleted by retention"
        return f"{done}: {self.why}" if self.why else done


@dataclass(frozen=True)
class NotLanded(Reason):
    def __str__(self) -> str:
        return "has not landed"


@dataclass(frozen=True)
class TakenBack(Reason):
    """An instance that was recorded, but that a reader found missing."""

    def __str__(self) -> str:
        return "was there, and was taken back"


@dataclass(frozen=True)
class NotRefreshedSince(Reason):
    needed: datetime

    def __str__(self) -> str:
        return f"needs a refresh at or after {format_instant(self.needed)}"


@dataclass(frozen=True)
class NotWritten(Reason):
    process: str
    instance: datetime | None
    state: str | None

    def __str__(self) -> str:
        if self.instance is None:
            return f"is written by no instance of {self.process}"
        return f"is not written: {self.process} {format_instant(self.instance)} is {self.state}"


@dataclass(frozen=True)
class NotCopied(Reason):
    replication: str
    state: str

    def __str__(self) -> str:
        return f"is not copied: {self.replication} is {self.state}"


class MissingReasons:
    """Reads the ledger for all instances at once."""

    def __init__(self, connection: Connection, store: EntityStore, missing: Sequence[Key]) -> None:
        self._store = store
        found = hooks().missing_reasons(connection=connection, store=store, keys=missing)
        self._known: dict[Key, Reason] = merged(found)
        self._makers = {key: self._maker(*key) for key in missing}
        self._records = PROCESS_ROWS.some(connection, {one for one in self._makers.values() if one})

    def of(self, key: Key) -> Reason:
        name, cluster = key[:2]
        feed, maker = self._store.feed(name), self._makers[key]
        record = self._records.get(maker) if maker else None
        state = (record.state if record else InstanceState.WAITING).value
        if producers := self._store.producers(name, cluster):
            nominal = maker[2] if maker else None
            return NotWritten(producers[0].name, nominal, state if maker else None)
        if maker:
            return NotCopied(maker[0], state)
        if key in self._known:
            return self._known[key]
        return NotRefreshedSince(key[2]) if feed.snapshot else NotLanded()

    def _maker(self, name: str, cluster: str, instance: datetime) -> Key | None:
        """Of several writers, the last."""
        writers = writers_of(self._store, self._store.feed(name), cluster, instance)
        return (writers[-1][0].name, cluster, writers[-1][1]) if writers else None
