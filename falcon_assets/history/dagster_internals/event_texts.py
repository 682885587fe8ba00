"""Events as the text in which Dagster keeps them: what events of one form have in common is serialized once."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import dagster as dg
from dagster._core.events import AssetObservationData, StepMaterializationData  # what events in the log carry
from dagster._serdes import serialize_value  # how the log keeps events

_FIELD_OF: dict[type, str] = {
    dg.TextMetadataValue: "text",
    dg.MarkdownMetadataValue: "md_str",
    dg.PathMetadataValue: "path",
    dg.IntMetadataValue: "value",
    dg.FloatMetadataValue: "value",
    dg.BoolMetadataValue: "value",
    dg.JsonMetadataValue: "data",
}
"""Values with one field, which is the last in their text."""
_encode = json.JSONEncoder(sort_keys=True).encode
"""As Dagster's serializer encodes plain values."""
_HOLE = re.compile(r'"\\u0000(\d+)"')
"""Stands for the value of that number, where values differ: no event in a database has that character."""


@dataclass(frozen=True)
class EventTexts:
    """Events in one text each, equal to what Dagster's serializer makes of them; keep one object for a batch."""

    _forms: dict[tuple[Any, ...], Sequence[str | int]] = field(default_factory=dict)
    """What events have in common -> their text, with numbers where values differ."""
    _begins: dict[type, str] = field(default_factory=dict)
    """Type of metadata values -> the text before their field."""

    def of(self, entry: dg.EventLogEntry) -> str:
        said = entry.dagster_event
        data = said.event_specific_data if said else None
        if said is None or entry.error_info or not isinstance(data, StepMaterializationData | AssetObservationData):
            return serialize_value(entry)
        event = data.materialization if isinstance(data, StepMaterializationData) else data.asset_observation
        tags, metadata = event.tags or {}, event.metadata
        who = (entry.level, entry.run_id, entry.step_key, entry.job_name, *said[:5], *said[8:])
        what = (event.asset_key, (*metadata,), (*tags,), event.tags is None, str(said.logging_tags), str(data[1:]))
        form = (*who, *what)
        if form not in self._forms:
            text = serialize_value(_with_holes(entry, said, data, event))
            self._forms[form] = [int(part) if at % 2 else part for at, part in enumerate(_HOLE.split(text))]
        plain = (entry.user_message, entry.timestamp, said.message, event.description, event.partition)
        values = [*map(_encode, (*plain, *tags.values())), *map(self._value, metadata.values())]
        return "".join([values[part] if isinstance(part, int) else part for part in self._forms[form]])

    def _value(self, value: dg.MetadataValue[Any]) -> str:
        kind = type(value)
        if kind not in _FIELD_OF:
            return serialize_value(value)  # type: ignore[arg-type]  # each of its classes can be
        end = _encode(getattr(value, _FIELD_OF[kind])) + "}"
        if kind not in self._begins:
            self._begins[kind] = serialize_value(value).removesuffix(end)  # type: ignore[arg-type]  # as above
        return self._begins[kind] + end


def _with_holes(
    entry: Any, said: Any, data: StepMaterializationData | AssetObservationData, event: Any
) -> dg.EventLogEntry:
    """Made as tuples, which do not check their fields."""
    holes = map("\0{}".format, count())
    user_message, timestamp, message, description, partition = islice(holes, 5)
    tags = dict(zip(event.tags or {}, holes, strict=False)) if event.tags is not None else None
    metadata = dict(zip(event.metadata, holes, strict=False))
    event = event._replace(description=description, partition=partition, tags=tags, metadata=metadata)
    data = data._replace(**{data._fields[0]: event})
    said = said._replace(message=message, event_specific_data=data)
    made: dg.EventLogEntry = entry._replace(user_message=user_message, timestamp=timestamp, dagster_event=said)
    return made
