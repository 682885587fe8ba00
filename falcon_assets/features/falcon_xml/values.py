"""Conversion of values of Falcon's XML; changes of values that are not accepted here are reported."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from pydantic import ValidationError

from falcon_assets.features.falcon_xml.rules import Conversion, Found
from falcon_assets.features.falcon_xml.yaml_text import Node, Value
from falcon_assets.features.falcon_xml.zones import iana_zone
from falcon_assets.model.executor import ExecuteInterface
from falcon_assets.model.shared import Acl

LONGEST_NAME = 39
_MOST_ATTEMPTS = 100
_NUMBER = re.compile(r"[0-9]{1,9}")
_INSTANT = re.compile(r"([0-9]{4})[- /.]([0-9]{2})[- /.]([0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:00)?Z?")
_PAIR = re.compile(r"\s*([^=,]+?)\s*=\s*(.*?)\s*")
_PATTERN = re.compile(r"[*?\[]|\{[^}]*,")
_URL = re.compile(r"[a-z0-9+.-]+://[^/]*", re.IGNORECASE)


def legal_name(text: str) -> str:
    """Returns a legal name; equal names of Falcon give equal results."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", text)
    if not re.match(r"[A-Za-z]", name):
        name = f"x{name}"
    if len(name) > LONGEST_NAME or name != text:
        mark = hashlib.sha256(text.encode()).hexdigest()[:6]
        name = f"{name[: LONGEST_NAME - 7]}-{mark}"
    return name


def name(found: Found, conversion: Conversion) -> Value | None:
    return _named(found.text, found, conversion) if found.text else None


def names(found: Found, conversion: Conversion) -> Value | None:
    words = [one.strip() for one in found.text.split(",")]
    return [Node(_named(one, found, conversion), found.line) for one in words if one] or None


def _named(text: str, found: Found, conversion: Conversion) -> str:
    legal = legal_name(text)
    if legal != text:
        rule = f"a letter, then letters, digits, '-' or '_', {LONGEST_NAME} characters at most"
        conversion.warn(found.line, found.name, f"{text!r} is {legal!r} here, also in references: a name is {rule}")
    return legal


def tags(found: Found, conversion: Conversion) -> Value | None:
    pairs: dict[str, Node] = {}
    for piece in filter(None, (one.strip() for one in found.text.split(","))):
        said = _PAIR.fullmatch(piece)
        if said is None or said[1] in pairs:
            why = "is not name=value" if said is None else "has a name that was given before"
            conversion.warn(found.line, found.name, f"{piece!r} {why}: it is left out")
            conversion.remains.append((found.line, f"tags: {piece}"))
        else:
            pairs[said[1]] = Node(said[2], found.line)
    return pairs or None


def instant(found: Found, conversion: Conversion) -> Value | None:
    """Accepts other separators between year, month and day, as Falcon's schema did."""
    said = _INSTANT.fullmatch(found.text)
    if said is None:
        return found.text or None
    text = f"{said[1]}-{said[2]}-{said[3]}T{said[4]}Z"
    if text != found.text:
        conversion.warn(found.line, found.name, f"{found.text!r} is written {text}, in UTC: check that this is right")
    return text


def flag(found: Found, conversion: Conversion) -> Value | None:
    known = {"true": True, "1": True, "false": False, "0": False}
    return known.get(found.text.lower(), found.text or None)


def number(found: Found, conversion: Conversion) -> Value | None:
    return int(found.text) if _NUMBER.fullmatch(found.text) else found.text or None


def attempts(found: Found, conversion: Conversion) -> Value | None:
    value = number(found, conversion)
    if isinstance(value, int) and value > _MOST_ATTEMPTS:
        conversion.warn(found.line, found.name, f"{value} is {_MOST_ATTEMPTS} here, the maximum")
        return _MOST_ATTEMPTS
    return value


def words(change: dict[str, str], why: str) -> Callable[[Found, Conversion], Value | None]:
    def convert(found: Found, conversion: Conversion) -> Value | None:
        legal = change.get(found.text, found.text)
        if legal != found.text:
            conversion.warn(found.line, found.name, f"{found.text!r} is {legal!r} here: {why}")
        return legal or None

    return convert


def time_zone(found: Found, conversion: Conversion) -> Value | None:
    zone, why = iana_zone(found.text)
    if why is not None:
        conversion.warn(
            found.line,
            found.name,
            f"{found.text!r} is {zone} here: {why}" if zone != found.text else f"{zone!r}: {why}",
        )
    return zone or None


def permission(found: Found, conversion: Conversion) -> Value | None:
    try:
        Acl.model_validate({"owner": "x", "permission": found.text})
    except ValidationError:
        conversion.warn(
            found.line, found.name, f'{found.text!r} is "*" here, no change: write octal digits, such as "0755"'
        )
        return "*"
    return found.text


def execute(found: Found, conversion: Conversion) -> Value | None:
    """Converts the address of a resource manager or job tracker to the master of Spark."""
    try:
        ExecuteInterface.model_validate({"endpoint": found.text})
    except ValidationError:
        why = "Spark finds the resource manager by HADOOP_CONF_DIR; else write local[N], spark://host:port or sc://..."
        conversion.warn(found.line, found.name, f"{found.text!r} is 'yarn' here: {why}")
        return "yarn"
    return found.text


def readonly(found: Found, conversion: Conversion) -> Value | None:
    """Converts the endpoint for replication; Hadoop 3 has no hftp."""
    if found.text.lower().startswith(("hftp://", "hsftp://")):
        why = (
            "hftp is not supported any more, so replication reads through interfaces.write: write webhdfs:// or hdfs://"
        )
        conversion.warn(found.line, found.name, f"{found.text!r} is left out: {why}")
        return None
    return found.text or None


def registry(found: Found, conversion: Conversion) -> Value | None:
    if not found.text.startswith("thrift://"):
        conversion.warn(found.line, found.name, f"{found.text!r} stays, but a metastore's URL is thrift://host:port")
    return found.text or None


def folder(found: Found, conversion: Conversion) -> Value | None:
    url = _URL.match(found.text)
    if url is None:
        return found.text or None
    path = found.text[url.end() :]
    conversion.warn(found.line, found.name, f"{found.text!r} is {path!r} here: such a folder is below interfaces.write")
    return path or None


def location(found: Found, conversion: Conversion) -> Value | None:
    """Converts a path; patterns are not supported, and the name node is the cluster's write endpoint."""
    text = found.text
    if text.startswith("${nameNode}"):
        text = text.removeprefix("${nameNode}")
        conversion.warn(found.line, found.name, f"{found.text!r} is {text!r} here: a path is below interfaces.write")
    if _PATTERN.search(text.replace("${", "")):
        conversion.warn(found.line, found.name, f"{text!r} looks like a pattern, but paths are taken literally")
    return text or None
