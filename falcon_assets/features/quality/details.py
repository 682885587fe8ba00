"""States of instances as lists show them, and as reasons of those that wait for valid data."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.quality.rules import QualityState, Way
from falcon_assets.features.quality.states import KnownState, Place, known_states
from falcon_assets.features.quality.store import InstanceKey, VerdictRow, verdicts
from falcon_assets.instances.rules.waiting import InputInvalid, InputUnchecked
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reasons import Reason


def closed_gates(
    connection: Connection, store: EntityStore, feeds: Collection[Place], now: datetime
) -> Mapping[Place, Mapping[datetime, Reason]]:
    """The instances of these feeds that are invalid, or whose checks have not run yet."""
    found = dict[Place, dict[datetime, Reason]]()
    for key, state in known_states(connection, store, feeds, now, lambda key: key[:2] in feeds).items():
        found.setdefault(key[:2], {})[key[2]] = _reason(key, state)
    return found


def _reason(key: InstanceKey, known: KnownState) -> Reason:
    cluster, feed, instance = key
    is_own = known.way is Way.OWN
    if known.state is not QualityState.INVALID:
        problem = known.attempts.problem if known.attempts else ""
        of_part = "" if is_own else known.name
        is_backfilled = known.state is QualityState.BACKFILLED
        commands = (_command("show", known.origin), _command("check", known.origin))
        return InputUnchecked(feed, cluster, instance, is_backfilled, of_part, problem, commands)
    # What was replaced since cannot be overruled any more; what was made from it can.
    overruled = key if known.is_replaced else known.origin
    commands = (_command("show", known.origin), f"{_command('accept', overruled)} --reason REASON")
    about = (feed, cluster, instance, known.way.value, known.name)
    return InputInvalid(*about, *known.failed, known.is_replaced, commands)


def _command(name: str, key: tuple[Any, ...]) -> str:
    cluster, feed, instance = key[:3]
    return shlex.join(["falcon", "quality", name, feed, format_instant(instance), "--cluster", cluster])


def quality_of(
    connection: Connection, store: EntityStore, keys: Collection[InstanceKey], now: datetime
) -> Mapping[InstanceKey, Mapping[str, Any]]:
    """What lists show of instances; nothing of those whose checks nobody awaits, and that have no verdict."""
    rows = verdicts(connection, keys)
    asked = set(keys)
    states = known_states(connection, store, {one[:2] for one in keys}, now, asked.__contains__)
    return {key: _shown(rows.get(key), states.get(key)) for key in keys if key in rows or key in states}


def _shown(row: VerdictRow | None, known: KnownState | None) -> dict[str, Any]:
    """``verdict`` is that of its own checks, ``state`` what it means together with all others."""
    verdict = row.verdict.value if row else QualityState.UNCHECKED.value
    own = "accepted" if row and row.accepted_by else verdict.lower()
    return {
        "text": own if known is None else str(known),
        "state": known.state.value if known else QualityState.VALID.value,
        "verdict": verdict,
        "accepted_by": row.accepted_by if row else None,
        "failed": [one.name for one in row.checks if not one.passed] if row else [],
        "origin": known.origin_data if known else None,
    }
