"""What instances read when they succeeded last."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Connection, DateTime, Text, and_, func, literal, select

from falcon_assets.ledger.instances.instance_pages import Key
from falcon_assets.ledger.tables import CONSUMED
from falcon_assets.model.instant import format_instant

_READ = CONSUMED.c


@dataclass(frozen=True)
class Reading:
    """An instance of a process or a replication read an instance of a feed when it succeeded last.

    Attributes:
        key: Process, cluster and nominal time of the reader.
        input: By which input.
        version: What it read; None: it was not there (an optional input).
        is_stale: Whether there is another version now.
    """

    key: Key
    input: str
    version: str | None
    is_stale: bool

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        entity, cluster, nominal = self.key
        where = {"entity": entity, "cluster": cluster, "instance": format_instant(nominal)}
        return {**where, "input": self.input, "version": self.version, "stale": self.is_stale}


def readings(connection: Connection, cluster: str, feed: str, instance: datetime) -> list[Reading]:
    """Who read that instance of a feed on that cluster, by name, cluster and time."""
    own = and_(_READ.input_cluster == cluster, _READ.feed == feed, _READ.instance == instance)
    order = (_READ.process.collate("C"), _READ.cluster.collate("C"), _READ.nominal, _READ.input)
    found = connection.execute(select(CONSUMED).where(own).order_by(*order))
    return [Reading((row.process, row.cluster, row.nominal), row.input, row.version, row.stale) for row in found]


def versions_read(connection: Connection, instances: Collection[Key]) -> dict[Key, str | None]:
    """Instance -> the version that it read, of instances that read one instance of a feed."""
    if not instances:
        return {}
    entities, clusters, nominals = zip(*instances, strict=True)
    columns = {
        "process": literal(list(entities), ARRAY(Text)),
        "cluster": literal(list(clusters), ARRAY(Text)),
        "nominal": literal(list(nominals), ARRAY(DateTime(timezone=True))),
    }
    asked = func.unnest(*columns.values()).table_valued(*columns).render_derived(name="asked")
    own = and_(*(_READ[name] == asked.c[name] for name in columns))
    statement = select(_READ.process, _READ.cluster, _READ.nominal, _READ.version).join_from(asked, CONSUMED, own)
    return {
        (process, cluster, nominal): version for process, cluster, nominal, version in connection.execute(statement)
    }
