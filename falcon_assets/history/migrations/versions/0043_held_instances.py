"""Of outputs that are held: the instance of the process, and the event, by which they can be published."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Forgets what is held: nobody recorded what it was made from, so it has to be computed again."""
    op.execute("DELETE FROM falcon.quality_held")
    nominal = sa.Column("nominal", _INSTANT, nullable=False, comment="the instance of the process")
    event = "of Dagster's event, which has what it was made from"
    op.add_column("quality_held", nominal, schema="falcon")
    op.add_column("quality_held", sa.Column("event_id", sa.BigInteger, nullable=False, comment=event), schema="falcon")
    op.alter_column("quality_held", "accepted_by", comment="who overruled the checks; null: nobody", schema="falcon")


def downgrade() -> None:
    for name in ("nominal", "event_id"):
        op.drop_column("quality_held", name, schema="falcon")
