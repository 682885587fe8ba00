"""Who is told what became of instances, and what they were told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0020"
down_revision = "0019"

SCHEMA = "falcon"
_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the tables; nobody is told what happened before."""
    told = "the state that the receivers of notifications were told, if any; null: nothing"
    op.add_column("sla_breaches", sa.Column("notified", sa.Text, comment=told), schema=SCHEMA)
    breaches = sa.table("sla_breaches", sa.column("state"), sa.column("notified"), schema=SCHEMA)
    op.execute(sa.update(breaches).values(notified=breaches.c.state))
    op.create_index(
        "ix_sla_breaches_unnotified",
        "sla_breaches",
        ["cluster"],
        schema=SCHEMA,
        postgresql_where=sa.text("notified IS DISTINCT FROM state"),
    )
    op.create_table(
        "notified",
        sa.Column("kind", sa.Text, primary_key=True, comment="process: of processes and replications; feed: of feeds"),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("events", JSONB, nullable=False, comment="what somebody is to be told of its instances"),
        sa.Column(
            "since_event", sa.BigInteger, nullable=False, comment="Dagster's events up to this one are told to nobody"
        ),
        sa.Column(
            "since", _INSTANT, nullable=False, comment="breaches of SLAs before it are told to nobody; falcon clock"
        ),
        sa.Column("seen_at", _INSTANT, nullable=False, comment="when the sensor saw that it is declared, in real time"),
        schema=SCHEMA,
    )
    op.create_table(
        "notification_events",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True, comment="the same for the same event"),
        sa.Column("event", sa.Text, nullable=False, comment="FAILED, TIMED_OUT, LATE, EVICTED or SUCCEEDED"),
        sa.Column("kind", sa.Text, nullable=False, comment="as in notified"),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("instance", _INSTANT, nullable=False),
        sa.Column("at", _INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column("source", sa.Text, nullable=False, comment="tells it from others of the instance"),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("event_id", sa.BigInteger, comment="of Dagster's event; null: there is none"),
        schema=SCHEMA,
    )
    op.create_table(
        "notifications",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("receiver", sa.Text, nullable=False, comment="name of the environment variable with the URL"),
        sa.Column("key", sa.Text, nullable=False, comment="of the event"),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False, comment="feed or process"),
        sa.Column("entity", sa.Text, nullable=False),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("instance", _INSTANT, nullable=False),
        sa.Column("at", _INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False, comment="PENDING, SENDING, SENT or GIVEN_UP"),
        sa.Column("message", sa.Text, comment="the message that tells it; null: none yet"),
        sa.Column("noted_at", _INSTANT, nullable=False, comment="in real time"),
        sa.Column("settled_at", _INSTANT, comment="SENT, GIVEN_UP: when, in real time"),
        sa.UniqueConstraint("receiver", "key"),
        schema=SCHEMA,
    )
    is_open = sa.text("state IN ('PENDING', 'SENDING')")
    op.create_index(
        "ix_notifications_open", "notifications", ["receiver", "id"], schema=SCHEMA, postgresql_where=is_open
    )
    op.create_index("ix_notifications_message", "notifications", ["message"], schema=SCHEMA)
    op.create_index("ix_notifications_settled", "notifications", ["settled_at"], schema=SCHEMA)
    op.create_table(
        "notification_receivers",
        sa.Column("receiver", sa.Text, primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False, comment="messages in a row that did not come through"),
        sa.Column("problem", sa.Text, nullable=False, comment="why the last one did not; empty: it did"),
        sa.Column("sent_at", _INSTANT, comment="when a message came through last, in real time"),
        sa.Column("retry_at", _INSTANT, comment="when the next is tried, in real time; null: nothing failed"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops them."""
    for table in ("notification_receivers", "notifications", "notification_events", "notified"):
        op.drop_table(table, schema=SCHEMA)
    op.drop_index("ix_sla_breaches_unnotified", "sla_breaches", schema=SCHEMA)
    op.drop_column("sla_breaches", "notified", schema=SCHEMA)
