"""Late data: since when what landed may have been there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

SCHEMA = "falcon"
COMMENT = "the look before seen_at, where it landed: it came between the two"


def upgrade() -> None:
    """Adds the column; what landed until now counts as seen when it came."""
    column = sa.Column("looked_before", sa.DateTime(timezone=True), comment=COMMENT)
    op.add_column("feed_instances", column, schema=SCHEMA)


def downgrade() -> None:
    """Takes it away again."""
    op.drop_column("feed_instances", "looked_before", schema=SCHEMA)
