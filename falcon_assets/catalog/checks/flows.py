"""Checks of flows: their places are known, they have a validity, and there is a way; what has none waits."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.validation import unknown_word
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import Problem
from falcon_assets.model.flow import Flow, FlowEnd


def check_flows(definitions: Definitions) -> Iterator[Problem]:
    """Unknown places and no validity; a warning for a flow without a way, and nothing more about those problems."""
    for flow in definitions.flows.values():
        if flow.entity.validity is None:
            yield flow.problem(("validity",), "required key is missing: falcon flow submit writes it")
        yield from _unknown(definitions, flow, ("source",), flow.entity.source)
        for number, end in enumerate(flow.entity.destinations):
            yield from _unknown(definitions, flow, ("destinations", number), end)
        plan = definitions.plans.get(flow.entity.name)
        for why in plan.waits if plan else ():
            yield flow.warning((), f"flow {flow.entity.name!r} waits: {why}")


def _unknown(definitions: Definitions, flow: Declared[Flow], path: KeyPath, end: FlowEnd) -> Iterator[Problem]:
    kind = "cluster" if end.cluster is not None else "datasource"
    known = definitions.clusters if end.cluster is not None else definitions.datasources
    if end.place not in known and not definitions.is_unparsed(kind, end.place):
        yield flow.problem((*path, kind), unknown_word(kind, end.place, tuple(known)))
