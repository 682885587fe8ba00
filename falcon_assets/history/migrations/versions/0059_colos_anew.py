"""What was deleted and submitted again while its colo was away is deleted there first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"


def upgrade() -> None:
    """Adds the column."""
    comment = "the colo has the deleted one yet"
    column = sa.Column("is_anew", sa.Boolean, nullable=False, server_default="false", comment=comment)
    op.add_column("colo_wanted", column, schema="falcon")


def downgrade() -> None:
    """Removes it."""
    op.drop_column("colo_wanted", "is_anew", schema="falcon")
