"""Why process instances are in their state, as data."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

SCHEMA = "falcon"
COMMENT = "the reason for programs, where a rule says it"


def upgrade() -> None:
    """Adds the column; what was recorded until now has words only."""
    op.add_column("process_instances", sa.Column("reason_data", sa.JSON, comment=COMMENT), schema=SCHEMA)


def downgrade() -> None:
    """Takes it away again."""
    op.drop_column("process_instances", "reason_data", schema=SCHEMA)
