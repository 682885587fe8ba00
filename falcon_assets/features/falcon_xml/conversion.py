"""Conversion of a file of XML to a document of YAML: rules, settlements between several of them, and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass

from falcon_assets.features.falcon_xml.counterparts import KINDS
from falcon_assets.features.falcon_xml.datasources import TYPES, settle_datasource, without_secret_comments
from falcon_assets.features.falcon_xml.defaults import settle_retention_frequency, settle_retry
from falcon_assets.features.falcon_xml.elements import Element, UnfitXmlError, parse_xml
from falcon_assets.features.falcon_xml.older import modernise
from falcon_assets.features.falcon_xml.optional_keys import OptionalPart, optional_part
from falcon_assets.features.falcon_xml.rules import Conversion, Warned, apply, put, tell_the_rest
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node, YamlText, yaml_text
from falcon_assets.model.path_template import TIME_VARIABLES

_NAMESPACE = re.compile(r"uri:(falcon|ivory):(cluster|feed|process|datasource):0\.[0-9]+")
_NO_FORMAT = "format: parquet\nFalcon did not know the format of the files: change it here if it is another one"
_NEVER = "2090"
"""Validities that end in this year or later mean no end."""
_CALENDAR = re.compile(r"(days|months)\(")
_FILLED_IN_UTC = "Falcon filled paths in UTC; so does this feed, so that its instances keep their folders"
_NOT_IMPORTED = "Of {file}, not imported (see the warnings of `falcon import xml`):"


@dataclass
class Imported:
    """An entity; ``keys`` is the document, ``head`` the comments above it, ``name`` its name after conversion."""

    kind: str
    name: str
    source: str
    keys: Keys
    head: list[str]
    found: Conversion

    def text(self) -> YamlText:
        tail: list[str] = []
        if self.found.remains:
            tail.append(_NOT_IMPORTED.format(file=self.source))
            tail += [f"line {line}: {text}" for line, text in sorted(self.found.remains)]
        return yaml_text(self.keys, self.head, tail)

    def optional(self, key_path: str) -> OptionalPart | None:
        """Returns the smallest part that can be left out because of a problem at ``key_path``; None: there is none."""
        return optional_part(self.keys, key_path)

    def leave_out(self, part: OptionalPart, key_path: str, message: str) -> None:
        self.found.warn(part.node.line, key_path, f"{message}: {part.shown} is left out")
        if part.remove():
            self.found.remains.append((part.node.line, f"{part.name}\n{yaml_text({part.key: part.node}, (), ()).text}"))


def convert(raw: bytes, source: str) -> Imported | tuple[Warned, ...]:
    """Returns the entity that a file declares, or why there is none. ``source`` is the shown name of the file.

    Raises:
        UnfitXmlError: the file cannot be read, see :func:`~falcon_assets.features.falcon_xml.elements.parse_xml`.
    """
    parsed = parse_xml(raw)
    root = parsed.root
    if root.name not in KINDS or (root.namespace and not _NAMESPACE.fullmatch(root.namespace)):
        return (Warned(root.line, root.name, "it is not an entity of Apache Falcon: left out"),)
    if root.name == "datasource" and (refused := _unsupported(root)):
        return (refused,)
    modernise(root)
    own = root.attribute("name")
    conversion = Conversion(own.value.strip() if own else "")
    if root.name == "datasource":
        without_secret_comments(root, conversion)
    for line, text in parsed.instructions:
        conversion.warn(line, f"<?{text.split()[0] if text else ''}?>", "processing instructions are left out")
        conversion.remains.append((line, f"<?{text}?>"))
    head = root.claim_comments()
    keys: Keys = {"kind": Node(root.name, root.line), **apply(KINDS[root.name], root, conversion, root.name)}
    if root.name == "feed":
        _settle_feed(keys, conversion)
        settle_retention_frequency(keys, root)
    if root.name == "process":
        _settle_process(keys, conversion)
        settle_retry(keys, conversion)
    if root.name == "datasource":
        settle_datasource(keys)
    _settle_acl(keys, root)
    tell_the_rest(root, conversion, root.name)
    head += [comment for element in root.all() for comment in element.claim_comments()]
    name = keys["name"].value if "name" in keys else ""
    return Imported(root.name, str(name), source, keys, [f"Imported from {source}", *head], conversion)


def _unsupported(root: Element) -> Warned | None:
    kind = root.attribute("type")
    said = kind.value.strip() if kind else ""
    if said in TYPES:
        return None
    rule = f"datasources of type {said!r} are not supported, only those of {' and '.join(TYPES)}: left out"
    return Warned(kind.line if kind else root.line, "datasource/@type", rule)


def _settle_feed(keys: Keys, conversion: Conversion) -> None:
    _settle_path_zone(keys)
    if "format" not in keys:
        anchor = next((key for key in ("locations", "table", "clusters") if key in keys), None)
        if anchor:
            keys[anchor].comments = [*keys[anchor].comments, _NO_FORMAT]
    clusters = keys.get("clusters", Node([], 1)).value
    common = _within(keys.pop("clusters[]", None), "retention")
    for entry in clusters if isinstance(clusters, list) else ():
        if isinstance(entry.value, dict):
            if "lifecycle" not in entry.value:
                _take_over(entry.value, common, conversion)
            _settle_retention(entry, conversion)
    _settle_snapshot(keys, conversion)
    for entry in clusters if isinstance(clusters, list) else ():
        _tell_end_of_retention(entry, conversion)


def _settle_path_zone(keys: Keys) -> None:
    """Falcon filled all paths in UTC; here paths of days and months use the feed's zone unless declared otherwise."""
    zone, frequency = keys.get("timezone"), keys.get("frequency")
    if zone is None or frequency is None or zone.value == "UTC" or not _CALENDAR.match(str(frequency.value)):
        return
    rest = list(keys.items())
    at = list(keys).index("timezone") + 1
    keys.clear()
    keys.update([*rest[:at], ("path_timezone", Node("UTC", zone.line, [_FILLED_IN_UTC])), *rest[at:]])


def _settle_snapshot(keys: Keys, conversion: Conversion) -> None:
    """Falcon allowed paths without a time: all instances of the feed were the data at that place."""
    clusters = keys.get("clusters", Node([], 1)).value
    entries = [entry for entry in clusters if isinstance(entry.value, dict)] if isinstance(clusters, list) else []
    places = [there["data"] for one in (Node(keys, 1), *entries) if "data" in (there := _within(one, "locations"))]
    if not places or any(f"${{{name}}}" in str(place.value) for place in places for name in TIME_VARIABLES):
        return
    keys["snapshot"] = Node(True, places[0].line)
    rule = "a path without a time is a snapshot feed, available once it was refreshed at or after a time"
    conversion.warn(places[0].line, "feed/locations/location/@path", f"{places[0].value!r}: {rule}")
    for entry in entries:
        if isinstance(entry.value, dict) and (node := entry.value.pop("retention", None)):
            conversion.warn(
                node.line, "feed/clusters/cluster/retention", "a snapshot feed has only its present data: left out"
            )
            conversion.remains.append((node.line, yaml_text({"retention": node}, (), ()).text))


def _within(node: Node | None, key: str) -> Keys:
    """Returns the mapping at ``key`` of a mapping; empty where there is none."""
    inner = node.value.get(key) if node is not None and isinstance(node.value, dict) else None
    return inner.value if inner is not None and isinstance(inner.value, dict) else {}


def _take_over(entry: Keys, common: Keys, conversion: Conversion) -> None:
    """Lets retention of the feed's lifecycle override that of the cluster."""
    for key, node in common.items():
        before = put(entry, f"retention.{key}", Node(node.value, node.line))
        if before is not None and before.value != node.value:
            rule = f"the feed's lifecycle says {node.value} in line {node.line}, which is used, as in Falcon"
            conversion.warn(before.line, f"clusters[].retention.{key}", f"it is {before.value}, but {rule}")


def _settle_retention(entry: Node, conversion: Conversion) -> None:
    if not isinstance(entry.value, dict) or "retention" not in entry.value:
        return
    node = entry.value["retention"]
    retention = node.value
    if not isinstance(retention, dict):
        return
    action = retention.get("action", Node("delete", node.line))
    where = "feed/clusters/cluster/retention/@action"
    if "archive_to" in retention:
        if action.value != "archive":
            rule = "instances are moved to the archive when they are older than retention.limit"
            conversion.warn(action.line, where, f"{action.value!r} is 'archive' here, with the archival stage: {rule}")
        retention["action"] = Node("archive", action.line)
    elif action.value != "delete":
        why = "write archive_to" if action.value == "archive" else "its instances stay as they are"
        conversion.warn(action.line, where, f"{action.value!r} is not supported, so nothing is evicted: {why}")
        limit = retention.get("limit")
        conversion.remains.append((action.line, f"retention: limit {limit.value if limit else '?'}, {action.value}"))
        del entry.value["retention"]


def _tell_end_of_retention(entry: Node, conversion: Conversion) -> None:
    """Falcon's retention ended with the validity, so the last instances stayed for good; here they are evicted, too."""
    keys: Keys = entry.value if isinstance(entry.value, dict) else {}
    limit, end = _within(Node(keys, 1), "retention").get("limit"), _within(Node(keys, 1), "validity").get("end")
    if limit is None or end is None or str(end.value) >= _NEVER:
        return
    conversion.warn(
        limit.line,
        "feed/clusters/cluster/retention/@limit",
        f"Falcon's retention ended with the validity, {end.value}, so instances then younger than {limit.value} stayed "
        "for ever; here they are evicted, too, when they are older than that: remove retention to keep them",
    )


def _settle_process(keys: Keys, conversion: Conversion) -> None:
    """Falcon allowed either end of an SLA to be missing."""
    sla = keys["sla"].value if "sla" in keys else None
    if not isinstance(sla, dict):
        return
    if "should_start_in" not in sla:
        end = sla["should_end_in"]
        rule = "shouldStartIn is missing and required here, so shouldEndIn is used for both"
        conversion.warn(end.line, "process/sla", f"{rule}: {end.value}")
        keys["sla"].value = {"should_start_in": Node(end.value, end.line), **sla}
    elif "should_end_in" not in sla:
        start = sla["should_start_in"]
        rule = "shouldEndIn is missing and required here: the SLA is left out"
        conversion.warn(start.line, "process/sla", rule)
        conversion.remains.append((start.line, f"sla: should_start_in {start.value}"))
        del keys["sla"]


def _settle_acl(keys: Keys, root: Element) -> None:
    """Falcon's schema defaults the permission to ``*``."""
    acl = keys["acl"].value if "acl" in keys else None
    if isinstance(acl, dict) and "owner" in acl and "permission" not in acl:
        acl["permission"] = Node("*", keys["acl"].line)


__all__ = ["Imported", "UnfitXmlError", "Warned", "convert"]
