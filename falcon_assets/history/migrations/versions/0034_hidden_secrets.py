"""Secrets that were recorded: stars in their place, in definitions and in requests to run again."""

from __future__ import annotations

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

from falcon_assets.catalog.hidden_values import as_recorded
from falcon_assets.planning.process_instance import starred

revision = "0034"
down_revision = "0033"

_VERSIONS = sa.table(
    "definition_versions",
    *(sa.column(name) for name in ("kind", "name", "version", "text", "text_hash")),
    schema="falcon",
)
_RERUNS = sa.table(
    "reruns",
    *(sa.column(name) for name in ("process", "cluster", "nominal")),
    sa.column("properties", sa.JSON),
    schema="falcon",
)


def upgrade() -> None:
    """Stars them, with the hash of a definition that has changed by it: the present one is no new version."""
    for table, keys in ((_VERSIONS, ("kind", "name", "version")), (_RERUNS, ("process", "cluster", "nominal"))):
        for row in op.get_bind().execute(sa.select(table)).all():
            if changed := _definition(row) if table is _VERSIONS else _request(row):
                own = sa.and_(*(table.c[key] == getattr(row, key) for key in keys))
                op.execute(table.update().where(own).values(changed))


def _definition(row: sa.Row[tuple[object, ...]]) -> dict[str, object]:
    if row.text is None:
        return {}
    text = as_recorded(row.text)
    return {"text": text, "text_hash": sha256(text.encode()).hexdigest()} if text != row.text else {}


def _request(row: sa.Row[tuple[object, ...]]) -> dict[str, object]:
    properties = dict(starred(tuple(row.properties.items())))
    return {"properties": properties} if properties != row.properties else {}


def downgrade() -> None:
    """Nobody knows them any more."""
