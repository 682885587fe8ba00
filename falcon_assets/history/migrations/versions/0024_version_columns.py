"""From which columns the columns of versions were made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0024"
down_revision = "0023"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates the table; nothing recorded them before."""
    op.create_table(
        "version_columns",
        sa.Column("plan", sa.Text, primary_key=True, comment="hash of the columns"),
        sa.Column(
            "columns", JSONB, nullable=False, comment="name, type, what each was made from, whether that is sure"
        ),
        schema=SCHEMA,
    )
    comment = "hash of its columns and what they were made from; null: not recorded"
    op.add_column("data_versions", sa.Column("plan", sa.Text, comment=comment), schema=SCHEMA)


def downgrade() -> None:
    """Drops them."""
    op.drop_column("data_versions", "plan", schema=SCHEMA)
    op.drop_table("version_columns", schema=SCHEMA)
