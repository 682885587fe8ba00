"""Which columns decide which rows versions have."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0025"
down_revision = "0024"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the column; nothing recorded them before."""
    comment = "what decides which rows there are; null: not recorded"
    op.add_column("version_columns", sa.Column("rows_from", JSONB, comment=comment), schema=SCHEMA)


def downgrade() -> None:
    """Drops it."""
    op.drop_column("version_columns", "rows_from", schema=SCHEMA)
