"""Tables of logins: sessions, tokens, users with passwords, and attempts to log in. Their times are real."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("hash", Text, nullable=False, unique=True, comment="SHA-256 of what the cookie has"),
    Column("principal", Text, nullable=False),
    Column("groups", JSONB, nullable=False, comment="as the way in said at the login"),
    Column("way", Text, nullable=False, comment="how the user proved the name"),
    Column("address", Text, nullable=False, comment="from which the user logged in"),
    Column("created", INSTANT, nullable=False),
    Column("used", INSTANT, nullable=False, comment="the last request, to the minute"),
    Column("expires", INSTANT, nullable=False, comment="however often it is used"),
)
"""Sessions of people; one that is revoked is deleted."""

API_TOKENS = Table(
    "api_tokens",
    METADATA,
    Column("name", Text, primary_key=True, comment="of the principal that its bearer is"),
    Column("hash", Text, nullable=False, unique=True, comment="SHA-256 of the token"),
    Column("role", Text, nullable=False),
    Column("groups", JSONB, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created", INSTANT, nullable=False),
    Column("expires", INSTANT, nullable=False),
    Column("used", INSTANT, comment="the last request, to the minute; null: never"),
    Column("revoked", INSTANT, comment="null: it is not"),
)
"""Tokens of programs."""

LOCAL_USERS = Table(
    "local_users",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("hash", Text, nullable=False, comment="Argon2id of the password"),
    Column("groups", JSONB, nullable=False),
    Column("created", INSTANT, nullable=False),
    Column("changed", INSTANT, nullable=False, comment="when the password was set"),
)
"""Users who log in with a password of this installation."""

LOGIN_ATTEMPTS = Table(
    "login_attempts",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", Text, nullable=False, comment="as it was given"),
    Column("address", Text, nullable=False),
    Column("at", INSTANT, nullable=False),
    Index("ix_login_attempts_address", "address", "at"),
)
"""Attempts to log in that did not succeed, or are under way: one that succeeds is deleted."""
