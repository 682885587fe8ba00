"""Names and passwords that this installation keeps, for small teams."""

from __future__ import annotations

from functools import cache
from typing import Any

from falcon_assets.model.base import Declaration

LONGEST_PASSWORD = 1_000


class PasswordsWay(Declaration):
    """Users of `falcon admin user add`. Nothing is to be declared: `passwords: {}`."""


def hashed(password: str) -> str:
    """The Argon2id hash to keep, with its salt and costs."""
    made: str = _hasher().hash(password)
    return made


def is_password(password: str, known: str | None) -> bool:
    """Whether it is the password of a hash; None, of no user, takes as long to find out."""
    from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415 - an extra

    try:
        _hasher().verify(known or _nobodys(), password[:LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False
    return known is not None


@cache
def _nobodys() -> str:
    return hashed("of nobody")


@cache
def _hasher() -> Any:
    from argon2 import PasswordHasher  # noqa: PLC0415 - an extra

    return PasswordHasher()
