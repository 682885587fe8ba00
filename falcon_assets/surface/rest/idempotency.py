"""Requests that are sent twice and performed once: their clients give them the same ``Idempotency-Key``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.errors import FalconError, UsageError
from falcon_assets.history.tables import ANSWERED_REQUESTS

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
_KEPT = timedelta(hours=24)
_LOST = timedelta(minutes=15)
"""After so long the server that had begun it is gone."""
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_FIELDS = ANSWERED_REQUESTS.c


class OtherRequestError(FalconError):
    """The key was used for another request."""


class UnderWayError(FalconError):
    """The request with this key is under way."""


@dataclass(frozen=True)
class GivenAnswer:
    status: int
    headers: dict[str, str]
    body: bytes


def fingerprint(*parts: bytes) -> str:
    """Identifies a request by its parts."""
    made = hashlib.sha256()
    for one in parts:
        made.update(len(one).to_bytes(8) + one)
    return made.hexdigest()


def answered_once(
    engine: Engine, principal: str, key: str, request: str, answer: Callable[[], GivenAnswer]
) -> tuple[GivenAnswer, bool]:
    """The answer, and whether it was given before; what failed by the fault of the server can be tried again.

    Raises:
        UsageError: the key is malformed.
        OtherRequestError: it was used for another request.
        UnderWayError: the request has no answer yet.
    """
    if not _KEY.fullmatch(key):
        raise UsageError(f"{HEADER}: write 1 to 200 printable ASCII characters without spaces")
    if (before := _begin(engine, principal, key, request)) is not None:
        return before, True
    try:
        found = answer()
    except BaseException:
        _forget(engine, principal, key)
        raise
    if found.status >= 500:
        _forget(engine, principal, key)
        return found, False
    values: dict[str, Any] = {"status": found.status, "headers": found.headers, "body": found.body}
    with engine.begin() as connection:
        connection.execute(update(ANSWERED_REQUESTS).where(*_of(principal, key)).values(**values))
    return found, False


def _begin(engine: Engine, principal: str, key: str, request: str) -> GivenAnswer | None:
    now = datetime.now(UTC)
    lost = _FIELDS.status.is_(None) & (_FIELDS.begun < now - _LOST)
    row = {"principal": principal, "key": key, "request": request, "begun": now}
    with engine.begin() as connection:
        connection.execute(delete(ANSWERED_REQUESTS).where((_FIELDS.begun < now - _KEPT) | lost))
        inserted = connection.execute(
            insert(ANSWERED_REQUESTS).values(row).on_conflict_do_nothing().returning(_FIELDS.key)
        ).first()
        if inserted is not None:
            return None
        there = connection.execute(select(ANSWERED_REQUESTS).where(*_of(principal, key))).one()
    if there.request != request:
        raise OtherRequestError(f"{HEADER} {key!r} was used for another request: give each request a key of its own")
    if there.status is None:
        raise UnderWayError(f"the request with {HEADER} {key!r} is under way: ask again in a moment")
    return GivenAnswer(there.status, there.headers, bytes(there.body))


def _forget(engine: Engine, principal: str, key: str) -> None:
    with engine.begin() as connection:
        connection.execute(delete(ANSWERED_REQUESTS).where(*_of(principal, key)))


def _of(principal: str, key: str) -> tuple[Any, Any]:
    return _FIELDS.principal == principal, _FIELDS.key == key
