"""Reruns that a person asks for: who, why and how."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

SCHEMA = "falcon"
FLAGS = {
    "late_workflow": "rerun: with the workflow that late data has",
    "use_latest": "rerun: with the present definition",
}
WORDS = {"actor": "rerun: who asked for it", "reason": "rerun: why"}
KIND = "late: its input changed"


def upgrade() -> None:
    """Adds the columns; until now only late data asked for reruns."""
    for name, comment in FLAGS.items():
        column = sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false(), comment=comment)
        op.add_column("reruns", column, schema=SCHEMA)
        op.alter_column("reruns", name, server_default=None, schema=SCHEMA)
    for name, comment in WORDS.items():
        words = sa.Column(name, sa.Text, nullable=False, server_default="", comment=comment)
        op.add_column("reruns", words, schema=SCHEMA)
        op.alter_column("reruns", name, server_default=None, schema=SCHEMA)
    op.alter_column("reruns", "kind", comment=f"{KIND}; rerun: a person asked for it", schema=SCHEMA)


def downgrade() -> None:
    """Takes them away again."""
    op.alter_column("reruns", "kind", comment=KIND, schema=SCHEMA)
    for name in (*FLAGS, *WORDS):
        op.drop_column("reruns", name, schema=SCHEMA)
