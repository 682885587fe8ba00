"""Answers to requests over HTTP, by the keys that clients give them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Adds the table; it is empty."""
    op.create_table(
        "answered_requests",
        sa.Column("principal", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True, comment="Idempotency-Key of the request"),
        sa.Column("request", sa.Text, nullable=False, comment="SHA-256 of method, path, query and body"),
        sa.Column("begun", _INSTANT, nullable=False, comment="in real time"),
        sa.Column("status", sa.Integer, comment="of the answer; null: it is under way"),
        sa.Column("headers", sa.JSON, comment="of the answer"),
        sa.Column("body", sa.LargeBinary, comment="of the answer"),
        schema="falcon",
    )
    op.create_index("answered_requests_begun", "answered_requests", ["begun"], schema="falcon")


def downgrade() -> None:
    """Drops it."""
    op.drop_table("answered_requests", schema="falcon")
