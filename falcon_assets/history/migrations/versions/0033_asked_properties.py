"""Reruns that are asked for with other properties."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the column; nothing was asked for with any until now."""
    comment = "rerun: properties over those that are declared"
    column = sa.Column("properties", sa.JSON, nullable=False, server_default="{}", comment=comment)
    op.add_column("reruns", column, schema=SCHEMA)
    op.alter_column("reruns", "properties", server_default=None, schema=SCHEMA)


def downgrade() -> None:
    """Takes it away."""
    op.drop_column("reruns", "properties", schema=SCHEMA)
