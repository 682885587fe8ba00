"""What versions were made from that is of no feed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the column; nothing recorded them before."""
    comment = "JSON: from what of no feed it was made; null: nothing, or nobody knows"
    op.add_column("data_versions", sa.Column("places", sa.Text, comment=comment), schema=SCHEMA)


def downgrade() -> None:
    """Drops it."""
    op.drop_column("data_versions", "places", schema=SCHEMA)
