"""Which run an event is about, for systems that collect lineage."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"

SCHEMA = "falcon"
_TABLES = ("notification_events", "notifications")


def upgrade() -> None:
    """Adds the columns; of what waits already it is not known."""
    for table in _TABLES:
        column = sa.Column("run", JSONB, comment="the run of the instance, or that removed it; null: not recorded")
        op.add_column(table, column, schema=SCHEMA)
    op.create_index("ix_data_versions_run", "data_versions", ["run_id"], schema=SCHEMA)


def downgrade() -> None:
    """Drops them."""
    op.drop_index("ix_data_versions_run", "data_versions", schema=SCHEMA)
    for table in _TABLES:
        op.drop_column(table, "run", schema=SCHEMA)
