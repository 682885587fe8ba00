"""How much is known of what versions were made from, and whether it is known what decides their rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the columns; nothing recorded them before."""
    for name, comment in _OF_VERSIONS.items():
        op.add_column("data_versions", sa.Column(name, sa.Text, comment=comment), schema=SCHEMA)
    comment = "whether more may decide which rows there are; null: it is sure"
    op.add_column("version_columns", sa.Column("rows_opaque", sa.Boolean, comment=comment), schema=SCHEMA)


def downgrade() -> None:
    """Drops them."""
    for name in _OF_VERSIONS:
        op.drop_column("data_versions", name, schema=SCHEMA)
    op.drop_column("version_columns", "rows_opaque", schema=SCHEMA)


_OF_VERSIONS = {
    "capture": "how much of what its run read and wrote is known; null: not recorded",
    "warnings": "JSON: how that differs from what the process declares; null: in nothing",
    "writes": "JSON: what its run wrote and does not declare; null: nothing, or nobody knows",
}
