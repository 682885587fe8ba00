"""What Dagster's asset checks show of breaches of SLAs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the column; the next ticks tell Dagster of all breaches."""
    told = sa.Column("told", sa.Text, comment="the state that Dagster's check of the asset shows; null: nothing")
    op.add_column("sla_breaches", told, schema=SCHEMA)
    op.create_index(
        "ix_sla_breaches_untold",
        "sla_breaches",
        ["cluster"],
        schema=SCHEMA,
        postgresql_where=sa.text("told IS DISTINCT FROM state"),
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_index("ix_sla_breaches_untold", "sla_breaches", schema=SCHEMA)
    op.drop_column("sla_breaches", "told", schema=SCHEMA)
