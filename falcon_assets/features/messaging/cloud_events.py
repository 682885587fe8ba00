"""CloudEvents 1.0 of transitions of instances, in structured JSON (source: the specification of CloudEvents)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.history.events.instance_event import EXECUTOR, Notice
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.workloads import kind_of_workload

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
TYPES = "org.falcon-assets.instance."
"""In front of each type."""
TYPES_OF_EXECUTORS = "org.falcon-assets.executor."


@dataclass(frozen=True)
class CloudEvent:
    """The event of a notice that was recorded, which always is the same; ``key`` is the same for one instance."""

    notice: Notice
    attributes: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.attributes["id"])

    @property
    def key(self) -> str:
        return str(self.attributes["partitionkey"])

    @property
    def topic(self) -> str:
        """The words by which AMQP routes it."""
        data = self.attributes["data"]
        return ".".join(str(data[name]) for name in ("cluster", "kind", "entity", "event"))

    @property
    def body(self) -> bytes:
        return json.dumps(self.attributes, ensure_ascii=False, separators=(",", ":")).encode()


def cloud_event(notice: Notice) -> CloudEvent:
    one = notice.happening
    kind = kind_of_workload(one.name) if one.kind == "process" else notice.kind
    instance, types = format_instant(one.instance), TYPES if one.kind != EXECUTOR else TYPES_OF_EXECUTORS
    source = f"/falcon/{one.cluster}/{kind}/{notice.entity}"
    about = {"event": one.event.value, "kind": kind, "entity": notice.entity, "cluster": one.cluster}
    more = {("run_id" if name == "id" else name): value for name, value in (one.run or {}).items()}
    data = {**about, "instance": instance, "reason": one.reason or None, **more}
    attributes = {
        "specversion": "1.0",
        "id": one.source,  # which is the key of one that was recorded
        "source": source,
        "type": f"{types}{one.event.value.lower().removeprefix('executor_')}",
        "subject": instance,
        "time": _time(one.at),
        "partitionkey": f"{source}/{instance}",
        "datacontenttype": "application/json",
        "data": {name: value for name, value in data.items() if value is not None},
    }
    return CloudEvent(notice, attributes)


def _time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
