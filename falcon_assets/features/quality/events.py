"""Records of verdicts in Dagster's log, on the assets of feeds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator

from falcon_assets.base.texts import hidden
from falcon_assets.features.quality.profile import ColumnProfile
from falcon_assets.features.quality.verdict import InstanceVerdict, QualityResult
from falcon_assets.history.events import record as keys
from falcon_assets.history.events.record import Data, Record, Size, Text, Time, Words, storable
from falcon_assets.model.instant import Instant


def _require_json(value: Any) -> Any:
    """Refuses what PostgreSQL cannot store: events with it are not ours."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=vars)
    except (TypeError, RecursionError) as error:
        raise ValueError("no JSON") from error
    if storable(text) != text or "\\u0000" in text:
        raise ValueError("PostgreSQL cannot store it")
    return value


def as_storable(value: Any) -> Any:
    """A figure without secrets, and without what neither JSON nor PostgreSQL has."""
    if isinstance(value, str):
        return storable(hidden(value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {as_storable(str(key)): as_storable(one) for key, one in value.items()}
    return [as_storable(one) for one in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class InstanceChecked(Record):
    """What the checks of a version say; ``suite``: which of them were measured."""

    key = "verdict"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    verdict: InstanceVerdict
    checked_version: Text
    at: Annotated[Time, keys.AT]
    suite: Text
    checked_records: Size = None
    checks: Annotated[tuple[QualityResult, ...], BeforeValidator(_require_json)] = ()
    profile: Annotated[tuple[ColumnProfile, ...] | None, BeforeValidator(_require_json)] = None
    checked_staged: bool = False
    """Before it was published."""
    overruled_by: Text | None = None
    """The person who accepted it, because of whom it was published all the same."""
    overruled_at: Time | None = None
    overruled_reason: Words = ""

    @property
    def overruled(self) -> str:
        """In words; empty: it is not."""
        return f"accepted by {self.overruled_by}: {self.overruled_reason}" if self.overruled_by else ""


@dataclass(frozen=True)
class InvalidAccepted(Record):
    """A person overrules the verdict about a version."""

    key = "accepted_by"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    accepted_by: Text
    accepted_version: Text
    at: Annotated[Time, keys.AT]
    reason: Annotated[Words, keys.REASON] = ""


@dataclass(frozen=True)
class OutputHeld(Record):
    """What a process computed for an instance lies at ``held_at``: it, or another output of it, failed its checks.

    The event also has what it was made from: the records that a materialization has. ``facts`` are those that come with
    the success of the instance, which it did not have.
    """

    key = "held_at"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    held_at: Text
    process: Annotated[Text, keys.PROCESS]
    nominal: Annotated[Instant, keys.NOMINAL]
    at: Annotated[Time, keys.AT]
    suite: Text = ""
    checked_records: Size = None
    checks: Annotated[tuple[QualityResult, ...], BeforeValidator(_require_json)] = ()
    profile: Annotated[tuple[ColumnProfile, ...] | None, BeforeValidator(_require_json)] = None
    facts: Data = None


@dataclass(frozen=True)
class HeldAccepted(Record):
    """A person overrules the checks of what is held."""

    key = "held_accepted_by"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    held_accepted_by: Text
    at: Annotated[Time, keys.AT]
    reason: Annotated[Words, keys.REASON] = ""


RECORDS = (InstanceChecked, InvalidAccepted, OutputHeld, HeldAccepted)
