"""Warnings for windows in another zone: Falcon evaluated them in the zone of the feed, here that of the process counts.

Source: Apache Falcon, the functions ``today`` and the like of its extension of Oozie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from falcon_assets.errors import FalconError
from falcon_assets.features.falcon_xml.rules import Warned
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node
from falcon_assets.model.expression import Call, parse_expression
from falcon_assets.model.expression_functions import FUNCTIONS, TimeFunction
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.timeline import Timeline

_TRIED = 40
"""Tried instances of a process: a month of days has both, equal and different results."""


def zone_warnings(process: Keys, feeds: Mapping[str, Mapping[str, Any]]) -> Iterator[Warned]:
    """Warns about inputs and outputs that the other zone changes, each with an example; skips invalid feeds."""
    own = plain_document(process)
    for key, ends in (("inputs", ("start", "end")), ("outputs", ("instance",))):
        nodes = process[key].value if key in process else []
        for node, one in zip(nodes if isinstance(nodes, list) else (), own.get(key) or (), strict=True):
            feed = feeds.get(str(one.get("feed")), {})
            zones = str(feed.get("timezone") or "UTC"), str(own.get("timezone") or "UTC")
            for end in ends if zones[0] != zones[1] else ():
                found = _example(str(one.get(end)), own, feed, zones)
                if found:
                    nominal, theirs, ours = map(format_instant, found)
                    yield Warned(
                        node.line,
                        f"process/{key}/{key[:-1]}/@{end}",
                        f"{one[end]} counted in the zone of feed {one['feed']!r} in Falcon, {zones[0]}, and counts in "
                        f"the process's here, {zones[1]}: for {nominal} it was {theirs} of the feed, and is {ours}; "
                        "give both one timezone, or write the hours that lie between into the expression",
                    )


def _example(
    expression: str, process: Mapping[str, Any], feed: Mapping[str, Any], zones: tuple[str, str]
) -> tuple[datetime, datetime, datetime] | None:
    """Returns an instance of the process and those of the feed in both zones; None: they are always equal."""
    try:
        call = parse_expression(expression)
        if not isinstance(FUNCTIONS[call.name], TimeFunction):
            return None
        instances, of_feed = _timeline(process), _timeline(feed)
        for nominal in map(instances.instance, range(min(_TRIED, instances.count))):
            theirs, ours = (_feed_instance(call, nominal, zone, of_feed) for zone in zones)
            if theirs != ours:
                return nominal, theirs, ours
    except (FalconError, LookupError, TypeError, ValueError, OverflowError, AttributeError):
        return None  # validation reports what is wrong with it
    return None


def _feed_instance(call: Call, nominal: datetime, zone: str, feed: Timeline) -> datetime:
    return feed.instance(feed.index_at_or_before(evaluate_time(call, nominal, zone)))


def _timeline(entity: Mapping[str, Any]) -> Timeline:
    """Uses the first cluster."""
    validity = entity["clusters"][0]["validity"]
    start, end = (parse_instant(str(validity[key])) for key in ("start", "end"))
    return Timeline(start, end, Frequency.parse(str(entity["frequency"])), str(entity.get("timezone") or "UTC"))


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(inner) for key, inner in node.value.items()}
    return [_plain(inner) for inner in node.value] if isinstance(node.value, list) else node.value


def plain_document(keys: Keys) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _plain(Node(keys, 1))
    return found
