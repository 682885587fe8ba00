"""Versions of feed instances: one record, which events carry, the ledger stores and lineage reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from falcon_assets.history.events import record as keys
from falcon_assets.history.events.record import Data, Size, Text, Time, VersionNumber, Words
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.planning.version_columns import VersionStatus


@dataclass(frozen=True)
class PublishedVersion:
    """The part of a version that its event has. Plain texts describe fields, and are comments in the database."""

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    version: Annotated[Text, keys.VERSION]
    seen_at: Annotated[Time | None, "since when it was there, on the falcon clock; null: it was only read"] = None
    bytes: Annotated[Size, keys.BYTES] = None
    records: Size = None
    files: Annotated[Size, keys.FILES] = None
    path: Text | None = None
    restored_by: Annotated[Text | None, "AVAILABLE: who restored it; null: it was made or landed"] = None
    process: Annotated[Text | None, keys.PROCESS, "which made it; null: it landed from outside"] = None
    nominal: Annotated[Instant | None, keys.NOMINAL, "the instance of the process"] = None
    definition: Annotated[VersionNumber, "the version that it was made with; null: not recorded"] = None
    made_by: Annotated[Text | None, "the user of the operating system whose run made it; null: not recorded"] = None
    environment: Annotated[Data, "JSON: versions of Python and packages that it was made with"] = None
    capture: Annotated[Words | None, "how much of what its run read and wrote is known; null: not recorded"] = None
    warnings: Annotated[
        tuple[Words, ...],
        keys.CAPTURE_WARNINGS,
        "JSON: how that differs from what the process declares; null: in nothing",
    ] = ()
    places: Annotated[
        tuple[Text, ...],
        keys.UNDECLARED_PLACES,
        "JSON: from what of no feed it was made; null: nothing, or nobody knows",
    ] = ()
    writes: Annotated[
        tuple[Text, ...],
        keys.UNDECLARED_WRITES,
        "JSON: what its run wrote and does not declare; null: nothing, or nobody knows",
    ] = ()


@dataclass(frozen=True)
class Version(PublishedVersion):
    """A version of a feed instance on a cluster; its fields are the columns of ``falcon.data_versions``, in order.

    Attributes:
        number: The column ``id``.
        ended_by: None: data that landed replaced it.
        kept_at: The place of a replaced version that is kept, from ``falcon.kept_versions``.
    """

    number: Annotated[int, "numbered as history mentions them"] = 0
    event_id: Annotated[int, "of Dagster's event that brought it last"] = 0
    status: Annotated[VersionStatus, "AVAILABLE, REPLACED, EVICTED or READ"] = VersionStatus.READ
    ended_at: Annotated[datetime | None, "when it was replaced or evicted, on the falcon clock"] = None
    ended_by: Annotated[str | None, "the run that replaced or evicted it"] = None
    archived_to: Annotated[str | None, "EVICTED: where it was archived; null: it was deleted"] = None
    run_id: Annotated[str | None, "the run that made it last"] = None
    made_at: Annotated[datetime | None, "when that run did, on the falcon clock; null: not recorded"] = None
    attempt: Annotated[int | None, "of the instance of the process"] = None
    late: Annotated[bool, "whether a late rerun made it"] = False
    plan: Annotated[str | None, "hash of its columns and what they were made from; null: not recorded"] = None
    kept_at: str | None = None

    @property
    def key(self) -> tuple[str, str, datetime, str]:
        return self.cluster, self.feed, self.instance, self.version

    @property
    def id(self) -> str:
        """``cluster/feed/instance@version``, which commands accept."""
        return f"{self.cluster}/{self.feed}/{format_instant(self.instance)}@{self.version}"

    @property
    def is_present(self) -> bool:
        return self.status is VersionStatus.AVAILABLE

    @property
    def exists(self) -> bool:
        return self.is_present or self.kept_at is not None

    def as_node(self) -> dict[str, Any]:
        where = {"id": self.id, "cluster": self.cluster, "feed": self.feed, "instance": format_instant(self.instance)}
        return {**where, "version": self.version, "status": self.status.value, "exists": self.exists}

    def as_data(self) -> dict[str, Any]:
        moments = {name: getattr(self, name) for name in ("seen_at", "ended_at", "made_at")}
        times = {name: moment and moment.isoformat() for name, moment in moments.items()}
        names = ("ended_by", "archived_to", "path", "bytes", "records", "files", "process", "kept_at", "restored_by")
        more = {name: getattr(self, name) for name in _MADE}
        made = {"nominal_time": self.nominal and format_instant(self.nominal), **more}
        seen = {"capture": self.capture, "capture_warnings": [*self.warnings], "undeclared_writes": [*self.writes]}
        return {**self.as_node(), **times, **{name: getattr(self, name) for name in names}, **made, **seen}


_MADE = ("run_id", "attempt", "definition", "late", "made_by", "environment")
