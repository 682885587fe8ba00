"""The journal of a front of several colos."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0057"
down_revision = "0056"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "colo_wanted",
        sa.Column("colo", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False, comment="of the entity, counted by this front"),
        sa.Column("present", sa.Boolean, nullable=False, comment="whether the colo is to have it"),
        sa.Column("place", sa.Text, nullable=False, comment="the colo of a cluster"),
        sa.Column("definition", sa.Text, comment="what the colo does not have yet"),
        sa.Column("status", sa.Text, comment="the status that it does not have yet"),
        sa.Column("is_pending", sa.Boolean, nullable=False),
        sa.Column("problem", sa.Text, nullable=False, comment="why it is pending, or why the last change was refused"),
        sa.Column("doubt", _INSTANT, comment="when a request got no answer"),
        sa.Column("principal", JSONB, nullable=False, comment="who asked: name, role, groups"),
        sa.Column("reason", sa.Text, nullable=False),
        schema="falcon",
    )
    op.create_table(
        "colos_read",
        sa.Column("colo", sa.Text, primary_key=True),
        sa.Column("at", _INSTANT, nullable=False),
        schema="falcon",
    )


def downgrade() -> None:
    """Drops them."""
    op.drop_table("colos_read", schema="falcon")
    op.drop_table("colo_wanted", schema="falcon")
