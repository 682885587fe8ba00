"""The feeds of a flow, as plain documents: one for each import, or the one of the cluster that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, TypeAlias

from falcon_assets.model.base import LONGEST_NAME
from falcon_assets.model.flow import Flow, FlowDataset, FlowDestination
from falcon_assets.model.frequency import TimeUnit
from falcon_assets.model.instant import format_instant
from falcon_assets.model.shared import Validity
from falcon_assets.model.transfer import ExportOptions, ImportOptions
from falcon_assets.planning.flows.routes import FlowRoute, Hop
from falcon_assets.planning.flows.topology import PlaceKey

FLOW_TAG = "falcon/flow"
"""The tag of the assets of a flow, with its name."""
_PATHS = {
    TimeUnit.MONTHS: "${YEAR}-${MONTH}",
    TimeUnit.DAYS: "${YEAR}-${MONTH}-${DAY}",
    TimeUnit.HOURS: "${YEAR}-${MONTH}-${DAY}/${HOUR}",
    TimeUnit.MINUTES: "${YEAR}-${MONTH}-${DAY}/${HOUR}/${MINUTE}",
}
KeyPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class MadeFeed:
    """A feed of a flow.

    Attributes:
        data: Its document.
        origins: Keys of the document -> the keys of the flow that they, and all below, are made of.
    """

    data: dict[str, Any]
    origins: Mapping[KeyPath, KeyPath] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.data["name"])


def feeds_of(flow: Flow, validity: Validity, route: FlowRoute, folders: Mapping[str, str]) -> list[MadeFeed]:
    """The first has the name of the flow.

    Args:
        flow: What is moved.
        validity: When.
        route: The way that was found for it.
        folders: The folders of clusters for what lies at no place that the flow names.
    """
    imports = [hop for hop in route.hops if hop.kind == "import"]
    roots = [hop.target for hop in imports] or [("cluster", flow.source.place)]
    return [
        _Making(flow, validity, route, folders, _name(flow, root[1], number)).feed(root, bool(imports))
        for number, root in enumerate(roots)
    ]


def instances_of(flow: Flow, validity: Validity) -> Validity | None:
    """The validity of its feeds: from the first time of its schedule on; None: there is none before the end."""
    start, end = validity.start, validity.end
    if flow.once:
        return Validity(start=start, end=min(end, start + timedelta(minutes=1)))
    if flow.schedule is not None:
        start = flow.schedule.first_from(start, flow.timezone)
    return Validity(start=start, end=end) if start < end else None


def submitted_start(flow: Flow, now: datetime) -> datetime:
    """When a flow starts that is submitted now and does not say it."""
    minute = now.replace(second=0, microsecond=0)
    if flow.schedule is None:
        return minute
    if flow.run_immediately:
        return flow.schedule.last_until(minute, flow.timezone)
    return flow.schedule.first_from(now, flow.timezone)


@dataclass(frozen=True)
class _Making:
    flow: Flow
    validity: Validity
    route: FlowRoute
    folders: Mapping[str, str]
    name: str

    def feed(self, root: PlaceKey, is_imported: bool) -> MadeFeed:
        flow = self.flow
        copies = [hop.target for hop in self._hops("replication", root)]
        options = {"order": "LAST_ONLY"} if copies and flow.catch_up == "skip" else {}
        common = {
            "kind": "feed",
            "name": self.name,
            "description": flow.description,
            "tags": {**flow.tags, FLOW_TAG: flow.name},
            "groups": [flow.group] if flow.group else [],
            "frequency": str(flow.step),
            "timezone": flow.timezone,
            "availability_flag": flow.availability_flag,
            "format": flow.format,
            "options": dict(flow.options),
            "schema": flow.schema_,
            "sla": _plain(flow.sla),
            "notification": _plain(flow.notification),
            "acl": _plain(flow.acl),
            "properties": {**options, **flow.properties},
            "schedule": True,
        }
        origins: dict[KeyPath, KeyPath] = {(key,): (key,) for key in common if key != "schedule"}
        origins |= {("groups",): ("group",), ("frequency",): ("schedule" if flow.schedule else "frequency",)}
        entries = []
        for number, cluster in enumerate([root, *copies]):
            entry, own = self._entry(cluster, "source" if number == 0 else "target")
            if number == 0 and not copies:
                del entry["type"]
            if number == 0 and is_imported:
                entry["import"] = self._import()
                own |= _transfer_origins(("import",), ("source",), "source")
            entries.append(_without_empty(entry))
            origins |= {("clusters", number, *key): origin for key, origin in own.items()}
        return MadeFeed({**_without_empty(common), "clusters": entries}, origins)

    def _entry(self, cluster: PlaceKey, role: str) -> tuple[dict[str, Any], dict[KeyPath, KeyPath]]:
        name, flow = cluster[1], self.flow
        number, destination = self._destination(cluster)
        exports, origins = [], dict[KeyPath, KeyPath]()
        for at, hop in enumerate(self._hops("export", cluster)):
            to, stored = self._destination(hop.target)
            if stored is not None and stored.dataset is not None:
                exports.append({**self._options(stored.export), "target": _named(stored.place, stored.dataset)})
                origins |= _transfer_origins(("export", at), ("destinations", to), "target")
        is_source = flow.source.cluster == name
        dataset = flow.source.dataset if is_source else destination.dataset if destination else None
        own = destination.retention if destination else None
        retention = own or (None if is_source else flow.retention)
        said: KeyPath = ("source",) if is_source or destination is None else ("destinations", number)
        origins |= {
            (): said,
            ("name",): (*said, "cluster"),
            ("validity",): ("validity",),
            ("locations", "data"): (*said, "dataset", "path"),
            ("table", "uri"): (*said, "dataset", "table"),
            ("retention",): (*said, "retention") if own else ("retention",),
        }
        return {
            "name": name,
            "type": role,
            "validity": {key: format_instant(getattr(self.validity, key)) for key in ("start", "end")},
            **self._storage(name, dataset),
            "retention": _plain(retention),
            "export": exports,
        }, origins

    def _storage(self, cluster: str, dataset: FlowDataset | None) -> dict[str, Any]:
        if dataset is not None and dataset.table is not None:
            return {"table": {"uri": dataset.table}}
        path = dataset.path if dataset else None
        below = f"{self.folders[cluster].rstrip('/')}/{self.name}/{_PATHS[self.flow.step.unit]}"
        return {"locations": {"data": path or below}}

    def _import(self) -> dict[str, Any]:
        source = self.flow.source
        assert source.dataset is not None
        return {**self._options(source.import_), "source": _named(source.place, source.dataset)}

    def _options(self, declared: ImportOptions | ExportOptions | None) -> dict[str, Any]:
        """What is declared, and what the whole flow says where it is not."""
        flow, sla = self.flow, self.flow.sla
        skips = {"order": "LAST_ONLY"} if flow.catch_up == "skip" else {}
        deadlines = {"sla": {"should_start_in": str(sla.low), "should_end_in": str(sla.high)}} if sla else {}
        queue = {"queue": flow.queue} if flow.queue else {}
        return {**skips, **deadlines, **queue, **_plain(declared)}

    def _hops(self, kind: str, source: PlaceKey) -> Iterator[Hop]:
        return (hop for hop in self.route.hops if hop.kind == kind and hop.source == source)

    def _destination(self, place: PlaceKey) -> tuple[int, FlowDestination | None]:
        return next(
            ((number, one) for number, one in enumerate(self.flow.destinations) if getattr(one, place[0]) == place[1]),
            (0, None),
        )


def _transfer_origins(keys: KeyPath, end: KeyPath, other: str) -> dict[KeyPath, KeyPath]:
    """``other``: the key for the datasource of an import or export."""
    kind = str(keys[0])
    return {
        keys: (*end, kind),
        (*keys, other): (*end, "dataset"),
        (*keys, other, "name"): (*end, "datasource"),
    }


def _name(flow: Flow, cluster: str, number: int) -> str:
    """Legal, and the same each time."""
    whole = f"{flow.name}-{cluster}"
    if number == 0:
        return flow.name
    if len(whole) <= LONGEST_NAME:
        return whole
    mark = blake2b(whole.encode(), digest_size=4).hexdigest()
    return f"{whole[: LONGEST_NAME - len(mark) - 1]}-{mark}"


def _named(place: str, dataset: FlowDataset) -> dict[str, str]:
    return {"name": place, **_plain(dataset)}


def _plain(declared: Any) -> dict[str, Any]:
    """What was written, as plain values."""
    return {} if declared is None else declared.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _without_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in (None, "", [], {})}
