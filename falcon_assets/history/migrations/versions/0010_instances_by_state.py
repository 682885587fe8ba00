"""Finds the instances of a process that are in a state, however many there are."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"

SCHEMA = "falcon"
INDEX = "ix_process_instances_state"


def upgrade() -> None:
    """Adds the index."""
    op.create_index(INDEX, "process_instances", ["process", "cluster", "state", "nominal"], schema=SCHEMA)


def downgrade() -> None:
    """Takes it away again."""
    op.drop_index(INDEX, "process_instances", schema=SCHEMA)
