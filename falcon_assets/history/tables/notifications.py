"""Tables of notifications."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Integer, Table, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB

from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA, columns_of

NOTIFIED = Table(
    "notified",
    METADATA,
    Column("kind", Text, primary_key=True, comment="process: of processes and replications; feed: of feeds"),
    Column("name", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("events", JSONB, nullable=False, comment="what somebody is to be told of its instances"),
    Column("since_event", BigInteger, nullable=False, comment="Dagster's events up to this one are told to nobody"),
    Column("since", INSTANT, nullable=False, comment="breaches of SLAs before it are told to nobody; falcon clock"),
    Column("seen_at", INSTANT, nullable=False, comment="when the sensor saw that it is declared, in real time"),
)
"""Entities whose events are kept for receivers."""

NOTIFICATION_EVENTS = Table(
    "notification_events",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("key", Text, nullable=False, unique=True, comment="the same for the same event"),
    *columns_of(InstanceEvent),
)
"""Events whose receivers are not yet determined."""

NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("receiver", Text, nullable=False, comment="name of the environment variable with the URL"),
    Column("key", Text, nullable=False, comment="of the event"),
    Column("event", Text, nullable=False),
    Column("kind", Text, nullable=False, comment="feed or process"),
    Column("entity", Text, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("instance", INSTANT, nullable=False),
    Column("at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("reason", Text, nullable=False),
    Column("state", Text, nullable=False, comment="PENDING, SENDING, SENT or GIVEN_UP"),
    Column("message", Text, comment="the message that tells it; null: none yet"),
    Column("noted_at", INSTANT, nullable=False, comment="in real time"),
    Column("settled_at", INSTANT, comment="SENT, GIVEN_UP: when, in real time"),
    Column("run", JSONB(none_as_null=True), comment="the run of the instance, or that removed it; null: not recorded"),
    UniqueConstraint("receiver", "key"),
)
"""Notices to receivers, each event once per receiver."""
Index(
    "ix_notifications_open",
    NOTIFICATIONS.c.receiver,
    NOTIFICATIONS.c.id,
    postgresql_where=text("state IN ('PENDING', 'SENDING')"),
)
Index("ix_notifications_message", NOTIFICATIONS.c.message)
Index("ix_notifications_settled", NOTIFICATIONS.c.settled_at)

NOTIFICATION_RECEIVERS = Table(
    "notification_receivers",
    METADATA,
    Column("receiver", Text, primary_key=True),
    Column("failures", Integer, nullable=False, comment="messages in a row that did not come through"),
    Column("problem", Text, nullable=False, comment="why the last one did not; empty: it did"),
    Column("sent_at", INSTANT, comment="when a message came through last, in real time"),
    Column("retry_at", INSTANT, comment="when the next is tried, in real time; null: nothing failed"),
)
