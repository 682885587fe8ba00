"""When versions were made: what is restored is there since then, and was made before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the column; a rebuild of the ledger fills it for what was made before."""
    comment = "when that run did, on the falcon clock; null: not recorded"
    op.add_column("data_versions", sa.Column("made_at", sa.DateTime(timezone=True), comment=comment), schema=SCHEMA)


def downgrade() -> None:
    """Drops it."""
    op.drop_column("data_versions", "made_at", schema=SCHEMA)
