"""Verdicts: coordinators ask for those that are invalid, which are few."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Creates an index of the invalid versions that nobody has accepted."""
    op.create_index(
        "ix_quality_verdicts_invalid",
        "quality_verdicts",
        ["cluster", "feed", "instance", "version"],
        schema="falcon",
        postgresql_where=sa.text("verdict = 'INVALID' AND accepted_by IS NULL"),
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_index("ix_quality_verdicts_invalid", "quality_verdicts", schema="falcon")
