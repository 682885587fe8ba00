"""Completeness: reported parts of feed instances, and their shares."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"

SCHEMA = "falcon"
_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the tables; nothing was reported before."""
    op.create_table(
        "reported_parts",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", _INSTANT, primary_key=True),
        sa.Column(
            "source", sa.Text, primary_key=True, comment="the program or machine that sends; empty: there is only one"
        ),
        sa.Column("part", sa.Text, primary_key=True, comment="empty: the source as a whole"),
        sa.Column("records", sa.BigInteger, comment="how many came; null: not reported"),
        sa.Column("expected", sa.BigInteger, comment="how many were sent; null: not reported"),
        sa.Column("minimum", sa.Text),
        sa.Column("maximum", sa.Text),
        sa.Column("offsets", sa.Text),
        sa.Column("reported_at", _INSTANT, nullable=False, comment="the last report, on the falcon clock"),
        schema=SCHEMA,
    )
    op.create_table(
        "completeness",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", _INSTANT, primary_key=True),
        sa.Column("expected", sa.BigInteger, comment="records that were sent; null: not known"),
        sa.Column("records", sa.BigInteger, comment="records that are there; null: not known"),
        sa.Column(
            "taken",
            sa.Boolean,
            nullable=False,
            comment="whether it was taken incomplete: it was waited for long enough",
        ),
        sa.Column("changed_at", _INSTANT, comment="the last report or count, on the falcon clock"),
        sa.Column(
            "counted", sa.Text, comment="signature of the listing whose records were counted; null: they were reported"
        ),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops them."""
    for name in ("completeness", "reported_parts"):
        op.drop_table(name, schema=SCHEMA)
