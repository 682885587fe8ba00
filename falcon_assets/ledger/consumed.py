"""What instances read when they succeeded last."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ARRAY, Connection, DateTime, Text, and_, func, literal, select

from falcon_assets.ledger.instance_pages import Key
from falcon_assets.ledger.tables import CONSUMED

_READ = CONSUMED.c


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
