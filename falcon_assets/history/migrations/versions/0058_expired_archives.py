"""When archived instances went from their archives."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0057"


def upgrade() -> None:
    """Adds the column."""
    said = "archive: when it went from there, on the falcon clock; null: it did not"
    op.add_column("evictions", sa.Column("expired_at", sa.DateTime(timezone=True), comment=said), schema="falcon")


def downgrade() -> None:
    """Drops it."""
    op.drop_column("evictions", "expired_at", schema="falcon")
