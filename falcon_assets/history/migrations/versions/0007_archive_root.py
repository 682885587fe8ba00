"""Archives that are whole URLs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

SCHEMA = "falcon"
COMMENT = "archive: URL of the root of the path; null = the cluster's own"


def upgrade() -> None:
    """Adds the column; until now everything was archived below the root of a cluster."""
    op.add_column("evictions", sa.Column("archive_root", sa.Text, comment=COMMENT), schema=SCHEMA)


def downgrade() -> None:
    """Takes it away again."""
    op.drop_column("evictions", "archive_root", schema=SCHEMA)
