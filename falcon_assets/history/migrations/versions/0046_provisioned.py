"""Executors that are started when work waits for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"

_INSTANT = sa.DateTime(timezone=True)
_TIMES = {
    "wanted_at": "provisioned: when work waited for it last, in real time",
    "launched_at": "provisioned: when it was started, in real time; null: it is stopped",
    "idle_since": "provisioned: since when nothing runs on it; null: something does",
}


def upgrade() -> None:
    """Adds the columns; none was started until now."""
    provisioned = sa.Column(
        "provisioned",
        sa.Boolean,
        nullable=False,
        server_default="false",
        comment="whether it is started when work waits for it",
    )
    op.add_column("executors", provisioned, schema="falcon")
    for name, comment in _TIMES.items():
        op.add_column("executors", sa.Column(name, _INSTANT, comment=comment), schema="falcon")


def downgrade() -> None:
    """Drops them."""
    for name in ("provisioned", *_TIMES):
        op.drop_column("executors", name, schema="falcon")
