"""The files of workflows are kept with the versions of definitions; instances know the version that they ran with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates tables and columns; the next load keeps the files of the present versions."""
    op.create_table(
        "workflow_files",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False, comment="of its definition"),
        sa.Column("path", sa.Text, primary_key=True, comment="relative to the folder of the definitions"),
        sa.Column("hash", sa.Text, comment="SHA-256 of the content; null: it was not kept"),
        sa.Column("problem", sa.Text, nullable=False, comment="why it was not kept"),
        schema=SCHEMA,
    )
    op.create_table(
        "file_contents",
        sa.Column("hash", sa.Text, primary_key=True, comment="SHA-256 of the whole content"),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False, comment="of the part, from 0"),
        sa.Column("data", sa.LargeBinary, nullable=False),
        schema=SCHEMA,
    )
    op.execute("UPDATE falcon.definition_trees SET fingerprint = ''")
    since = sa.DateTime(timezone=True)
    op.add_column(
        "entity_status",
        sa.Column("scheduled_since", since, comment="when it was scheduled first, on the falcon clock; null: never"),
        schema=SCHEMA,
    )
    op.execute("UPDATE falcon.entity_status SET scheduled_since = since WHERE status <> 'SUBMITTED'")
    op.add_column(
        "process_instances",
        sa.Column("definition", sa.Integer, comment="the version that it ran with last; null: not recorded"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops them."""
    op.drop_column("process_instances", "definition", schema=SCHEMA)
    op.drop_column("entity_status", "scheduled_since", schema=SCHEMA)
    op.drop_table("file_contents", schema=SCHEMA)
    op.drop_table("workflow_files", schema=SCHEMA)
