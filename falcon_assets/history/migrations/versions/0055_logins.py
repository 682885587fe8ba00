"""Logins: sessions, tokens, users with passwords, attempts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0055"
down_revision = "0054"

_INSTANT = sa.DateTime(timezone=True)


def _text(name: str, comment: str | None = None, *, unique: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, unique=unique or None, comment=comment)


def _data(name: str, comment: str | None = None) -> sa.Column[Any]:
    return sa.Column(name, JSONB, nullable=False, comment=comment)


def _time(name: str, comment: str | None = None, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, _INSTANT, nullable=nullable, comment=comment)


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "sessions",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        _text("hash", unique=True, comment="SHA-256 of what the cookie has"),
        _text("principal"),
        _data("groups", "as the way in said at the login"),
        _text("way", "how the user proved the name"),
        _text("address", "from which the user logged in"),
        _time("created"),
        _time("used", "the last request, to the minute"),
        _time("expires", "however often it is used"),
        schema="falcon",
    )
    op.create_table(
        "api_tokens",
        sa.Column("name", sa.Text, primary_key=True, comment="of the principal that its bearer is"),
        _text("hash", unique=True, comment="SHA-256 of the token"),
        _text("role"),
        _data("groups"),
        _text("created_by"),
        _time("created"),
        _time("expires"),
        _time("used", "the last request, to the minute; null: never", nullable=True),
        _time("revoked", "null: it is not", nullable=True),
        schema="falcon",
    )
    op.create_table(
        "local_users",
        sa.Column("name", sa.Text, primary_key=True),
        _text("hash", "Argon2id of the password"),
        _data("groups"),
        _time("created"),
        _time("changed", "when the password was set"),
        schema="falcon",
    )
    op.create_table(
        "login_attempts",
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        _text("name", "as it was given"),
        _text("address"),
        _time("at"),
        schema="falcon",
    )
    op.create_index("ix_login_attempts_address", "login_attempts", ["address", "at"], schema="falcon")


def downgrade() -> None:
    """Drops them."""
    for name in ("login_attempts", "local_users", "api_tokens", "sessions"):
        op.drop_table(name, schema="falcon")
