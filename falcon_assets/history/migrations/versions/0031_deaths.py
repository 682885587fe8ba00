"""How often in a row the run of an instance was killed: that is no failure, unless it goes on and on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the column; nothing was counted before."""
    comment = "how often in a row its run was killed"
    column = sa.Column("deaths", sa.Integer, nullable=False, server_default="0", comment=comment)
    op.add_column("process_instances", column, schema=SCHEMA)


def downgrade() -> None:
    """Drops it."""
    op.drop_column("process_instances", "deaths", schema=SCHEMA)
