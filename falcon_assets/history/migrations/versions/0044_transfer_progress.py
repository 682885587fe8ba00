"""How far imports of changes have come, for people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"

_COLUMNS = {
    "newest": "the greatest value that was read of the column of an incremental import",
    "behind": "what the next instance reads although it was there already, and why",
}
_WAS, _IS = (
    "name and type of the columns of the source",
    "name of the columns that were read, and their types in the feed",
)


def upgrade() -> None:
    """Adds the columns."""
    for name, comment in _COLUMNS.items():
        op.add_column("transfers", sa.Column(name, sa.Text, comment=comment), schema="falcon")
    op.alter_column("transfers", "source_columns", comment=_IS, existing_comment=_WAS, schema="falcon")


def downgrade() -> None:
    """Drops them; the events in Dagster's log stay."""
    op.alter_column("transfers", "source_columns", comment=_WAS, existing_comment=_IS, schema="falcon")
    for name in _COLUMNS:
        op.drop_column("transfers", name, schema="falcon")
