"""Who started a run or a backfill: tags that the front sets, whatever tags its client has given.

The tag ``user`` fills "Launched by" in the UI. A hidden one has the principal for the operation jobs, signed with a key
in the database, which no client can read: jobs may believe it even if others reach the database by a webserver of
Dagster's that sets any tag.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256

import dagster as dg

from falcon_assets.history.dagster_internals.tags import HIDDEN, LAUNCHED_BY, RUN_KEY, STARTED_BY
from falcon_assets.model.access import Principal, Role

PRINCIPAL = f"{HIDDEN}falcon_principal"
_OURS = ("falcon/", f"{HIDDEN}falcon_")
_OTHERS = frozenset({LAUNCHED_BY, RUN_KEY, *STARTED_BY})
_KEY = "falcon_front_key"
STAMP: ContextVar[Mapping[str, str] | None] = ContextVar("stamp", default=None)
"""The tags of all runs and backfills that this context makes; None: it makes none for users of the front."""


@contextmanager
def stamping(tags: Mapping[str, str]) -> Iterator[None]:
    token = STAMP.set(tags)
    try:
        yield
    finally:
        STAMP.reset(token)


def stamped(tags: Mapping[str, str], parent: Mapping[str, str]) -> Mapping[str, str]:
    """The tags of a new run: without those that clients may not set, unless a repeated run has them, and with ours."""
    if (stamp := STAMP.get()) is None:
        return tags
    kept = {name: value for name, value in tags.items() if not _is_protected(name) or parent.get(name) == value}
    return {**kept, **stamp}


def _is_protected(name: str) -> bool:
    return name in _OTHERS or name.startswith(_OURS)


def stamp_of(who: Principal, key: bytes) -> dict[str, str]:
    known = {"name": who.name, "groups": sorted(who.groups), "role": who.role.name, "way": who.way}
    text = json.dumps({**known, "is_superuser": who.is_superuser})
    return {LAUNCHED_BY: who.name, PRINCIPAL: f"{_signature(text, key)} {text}"}


def principal_of(tags: Mapping[str, str], key: bytes) -> Principal | None:
    """Who started a run by the front; None: nobody, or the tag is forged."""
    signature, _, text = tags.get(PRINCIPAL, "").partition(" ")
    if not key or not hmac.compare_digest(signature.encode(), _signature(text, key).encode()):
        return None
    known = json.loads(text)
    role = Role[known["role"]]
    return Principal(known["name"], frozenset(known["groups"]), known["is_superuser"], role, known["way"])


def _signature(text: str, key: bytes) -> str:
    return hmac.new(key, text.encode(), sha256).hexdigest()


def signing_key(instance: dg.DagsterInstance, *, make: bool = False) -> bytes:
    """The key of this database; empty: no front has made one."""
    storage = instance.run_storage
    found = storage.get_cursor_values({_KEY}).get(_KEY)
    if found is None and make:
        storage.set_cursor_values({_KEY: secrets.token_hex(32)})
        return signing_key(instance)
    return (found or "").encode()
