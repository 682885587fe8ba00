"""Which definitions entities have had."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates the tables; the next load writes the first versions down."""
    op.create_table(
        "definition_versions",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False, comment="from 1"),
        sa.Column("text", sa.Text, comment="as it is stored, with stars for secrets; null: the entity was deleted"),
        sa.Column("text_hash", sa.Text, comment="SHA-256 of the text"),
        sa.Column("workflow_hash", sa.Text, comment="SHA-256 of the files of its workflows; null: it has none"),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False, comment="on the falcon clock"),
        sa.Column("operation", sa.Text, nullable=False, comment="the command, or load"),
        sa.Column("actor", sa.Text, nullable=False, comment="the user of the operating system"),
        sa.Column("reason", sa.Text, nullable=False, comment="in the words of who gave the command"),
        schema=SCHEMA,
    )
    op.create_table(
        "definition_trees",
        sa.Column("root", sa.Text, primary_key=True, comment="the folder of the definitions"),
        sa.Column("fingerprint", sa.Text, nullable=False, comment="of definitions and workflow files, without secrets"),
        sa.Column("workflows", sa.JSON, nullable=False, comment="the workflow files, relative to the folder"),
        sa.Column("entities", sa.JSON, nullable=False, comment="kind and name of each entity"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops them."""
    op.drop_table("definition_trees", schema=SCHEMA)
    op.drop_table("definition_versions", schema=SCHEMA)
