"""Transfers are imports: what exports do is in the table of deliveries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    """Drops what no import has."""
    for name in ("kind", "execution"):
        op.drop_column("transfers", name, schema="falcon")
    op.alter_column(
        "transfers", "process", comment="the import", existing_comment="the import or export", schema="falcon"
    )


def downgrade() -> None:
    """Adds it."""
    op.alter_column(
        "transfers", "process", comment="the import or export", existing_comment="the import", schema="falcon"
    )
    kind = sa.Column("kind", sa.Text, nullable=False, comment="import or export", server_default="import")
    op.add_column("transfers", kind, schema="falcon")
    op.alter_column("transfers", "kind", server_default=None, existing_comment="import or export", schema="falcon")
    execution = sa.Column("execution", sa.Text, comment="identifies the delivery at the target")
    op.add_column("transfers", execution, schema="falcon")
