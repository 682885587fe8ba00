"""Base of all records: values as metadata has them, and the conversion of records to metadata and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, TypeAdapter

from falcon_assets.base.texts import recorded

if TYPE_CHECKING:
    import dagster as dg


AssetEvent: TypeAlias = "dg.AssetMaterialization | dg.AssetObservation"

DATA_VERSION_TAG = "dagster/data_version"
"""Dagster's tag for the data version of a materialization; its constant is not public, the tag is documented."""

# Not metadata: the asset key says it.
CLUSTER = Field(alias="asset key: cluster", exclude=True)
ASSET = Field(alias="asset key: feed or process", exclude=True)
# Not metadata, either.
PARTITION = Field(alias="asset partition", exclude=True)
# The keys that several records have; all others are the names of the fields.
PROCESS = Field(alias="process")
NOMINAL = Field(alias="nominal_time")
INSTANCE = Field(alias="instance")
AT = Field(alias="at")
REASON = Field(alias="reason")
REASON_DATA = Field(alias="reason_data")
STATE_BEFORE = Field(alias="state_before")
INPUTS = Field(alias="inputs")
COLUMNS = Field(alias="columns", exclude=True)
UNDECLARED = Field(alias="undeclared_inputs")
UNDECLARED_PLACES = Field(alias="undeclared_places")
UNDECLARED_WRITES = Field(alias="undeclared_writes")
CAPTURE_WARNINGS = Field(alias="capture_warnings")
LATE = Field(alias="late")
VERSION = Field(alias="data_version", min_length=1)
BYTES = Field(alias="bytes")
FILES = Field(alias="files")
PUSHED = Field(alias="pushed")
PUSH_EVENT = Field(alias="pushed_event")

INTERNALS = "internals"
_INTERNAL = frozenset(
    {"signature", "looked_before", "pushed_event", "reason_data", "state_before", "rows_from", "column_transformations"}
)

LARGEST = 2**63 - 1
_LARGEST_NUMBER = 2**31 - 1


def storable(text: str) -> str:
    """Returns the text without NUL and invalid Unicode, which PostgreSQL cannot store."""
    return text.encode(errors="replace").decode().replace("\0", "")


def _require_storable(text: str) -> str:
    if storable(text) != text:
        raise ValueError("PostgreSQL cannot store it")
    return text


def _time(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("without a zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("not of the calendar") from error


_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""A NUL in JSON, not a backslash before ``u0000``."""


def _json_object(value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if storable(text) == text and not _NUL.search(text) else None


Text = Annotated[str, AfterValidator(_require_storable)]
Words = Annotated[
    str,
    BeforeValidator(lambda value: recorded(storable(value)) if isinstance(value, str) else value),
    PlainSerializer(recorded),
]
"""A text for people; too long ones are cut."""
Time = Annotated[
    datetime, BeforeValidator(_time), PlainSerializer(lambda moment: moment.isoformat(timespec="milliseconds"))
]
Size = Annotated[
    int | None,
    BeforeValidator(lambda value: value if type(value) is int and 0 <= value <= LARGEST else None),
]
"""A count; None: not counted, or no valid number."""
VersionNumber = Annotated[
    int | None,
    BeforeValidator(lambda value: value if type(value) is int and 1 <= value <= _LARGEST_NUMBER else None),
]
"""Of an entity definition, from 1; None: unknown."""
Data = Annotated[dict[str, Any] | None, BeforeValidator(_json_object)]
"""A JSON object; None: there is none, or PostgreSQL cannot store it."""


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


class Record:
    """A part of an event: a frozen dataclass of keys of its metadata; ``key`` is in no event without it."""

    key: ClassVar[str]

    def metadata(self) -> dict[str, Any]:
        said = _adapter(type(self)).dump_python(self, mode="json", by_alias=True, exclude_defaults=True)
        return {key: value for key, value in said.items() if value is not None}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Self:
        """Returns the record from the values of :func:`said_by`; raises ValueError if they have another form."""
        adapter: TypeAdapter[Self] = _adapter(cls)
        return adapter.validate_python(said)


def for_people(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns metadata in the order of the UI: plain values, then lists and objects, then :data:`INTERNALS`."""
    shown = {key: value for key, value in metadata.items() if key not in _INTERNAL}
    internal = {key: value for key, value in metadata.items() if key in _INTERNAL}
    in_order = dict(sorted(shown.items(), key=lambda one: isinstance(one[1], dict | list)))
    return {**in_order, **({INTERNALS: internal} if internal else {})}


def internals(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the values for programs; events of earlier versions have them beside the others."""
    found = getattr(metadata.get(INTERNALS), "value", None)
    return {key: found[key] for key in found if key in _INTERNAL} if isinstance(found, dict) else {}


def said_by(event: AssetEvent) -> dict[str, Any]:
    """Returns an event's metadata without Dagster's types, and its asset key, partition and data version."""
    cluster, asset = event.asset_key.path if len(event.asset_key.path) == 2 else (None, None)
    version = (event.tags or {}).get(DATA_VERSION_TAG)
    return {
        **internals(event.metadata),
        **{key: getattr(value, "value", value) for key, value in event.metadata.items()},
        **({VERSION.alias: version} if version else {}),
        CLUSTER.alias: cluster,
        ASSET.alias: asset,
        PARTITION.alias: event.partition or "",
    }
