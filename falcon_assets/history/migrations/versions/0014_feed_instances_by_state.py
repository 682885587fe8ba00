"""Finds the instances of a feed that are in a state, however many there are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

SCHEMA = "falcon"
INDEX, EVICTED = "ix_feed_instances_state", "ix_feed_instances_evicted"


def upgrade() -> None:
    """Adds the index; that of the evicted ones is a part of it."""
    op.create_index(INDEX, "feed_instances", ["cluster", "feed", "state", "instance"], schema=SCHEMA)
    op.drop_index(EVICTED, "feed_instances", schema=SCHEMA)


def downgrade() -> None:
    """Takes it away again."""
    op.create_index(
        EVICTED,
        "feed_instances",
        ["cluster", "feed", "instance"],
        schema=SCHEMA,
        postgresql_where=sa.text("state = 'EVICTED'"),
    )
    op.drop_index(INDEX, "feed_instances", schema=SCHEMA)
