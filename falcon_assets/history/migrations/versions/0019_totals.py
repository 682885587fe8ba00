"""Totals of instances by state, of bytes and of breaches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates the tables, with what is known; what was copied before is not, until the ledger is rebuilt."""
    op.create_table(
        "totals",
        sa.Column("what", sa.Text, primary_key=True, comment="feed or process: instances; copied_bytes, evicted_bytes"),
        sa.Column("entity", sa.Text, primary_key=True, comment="a feed, a process or a replication"),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("label", sa.Text, primary_key=True, comment="the state; evicted_bytes: what was done; else empty"),
        sa.Column("number", sa.Numeric, nullable=False),
        schema=SCHEMA,
    )
    op.create_table(
        "sla_totals",
        sa.Column("kind", sa.Text, primary_key=True, comment="feed or process"),
        sa.Column("entity", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("level", sa.Text, primary_key=True),
        sa.Column("breaches", sa.BigInteger, nullable=False),
        schema=SCHEMA,
    )
    op.execute(
        "INSERT INTO falcon.totals SELECT 'feed', feed, cluster, state, count(*) FROM falcon.feed_instances "
        "GROUP BY feed, cluster, state"
    )
    op.execute(
        "INSERT INTO falcon.totals SELECT 'process', process, cluster, state, count(*) FROM falcon.process_instances "
        "GROUP BY process, cluster, state"
    )
    op.execute(
        "INSERT INTO falcon.totals SELECT 'evicted_bytes', i.feed, i.cluster, coalesce(e.action, 'delete'), "
        "sum(i.evicted_bytes) FROM falcon.feed_instances i LEFT JOIN falcon.evictions e "
        "ON e.cluster = i.cluster AND e.feed = i.feed AND e.instance = i.instance "
        "WHERE i.evicted_bytes > 0 GROUP BY i.feed, i.cluster, coalesce(e.action, 'delete')"
    )
    op.execute(
        "INSERT INTO falcon.sla_totals SELECT kind, entity, cluster, level, count(*) FROM falcon.sla_breaches "
        "GROUP BY kind, entity, cluster, level"
    )


def downgrade() -> None:
    """Drops them."""
    for name in ("sla_totals", "totals"):
        op.drop_table(name, schema=SCHEMA)
