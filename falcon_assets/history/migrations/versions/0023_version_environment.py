"""Who made or restored a version, and with which versions of Python and packages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

SCHEMA = "falcon"
_COLUMNS = {
    "made_by": "the user of the operating system whose run made it; null: not recorded",
    "environment": "JSON: versions of Python and packages that it was made with",
    "restored_by": "AVAILABLE: who restored it; null: it was made or landed",
}


def upgrade() -> None:
    """Adds the columns; nothing recorded them before."""
    for name, comment in _COLUMNS.items():
        op.add_column("data_versions", sa.Column(name, sa.Text, comment=comment), schema=SCHEMA)


def downgrade() -> None:
    """Drops them."""
    for name in _COLUMNS:
        op.drop_column("data_versions", name, schema=SCHEMA)
