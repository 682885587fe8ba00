"""Application of the tables of rules to elements; everything without a rule is reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from falcon_assets.features.falcon_xml.elements import Attribute, Element
from falcon_assets.features.falcon_xml.remains import named_in, original
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node, Value

_STEP = re.compile(r"([\w-]+)(?:\[(\w+)=([\w.-]+)\])?")
UNKNOWN = "Apache Falcon has no such {what} here, or allows only one: it is left out; correct the XML if it is misspelt"


@dataclass(frozen=True, order=True)
class Warned:
    line: int
    name: str
    message: str


@dataclass
class Conversion:
    """The findings of a conversion beside its result.

    Attributes:
        remains: Line and text of XML that is not in the YAML.
        files: Stubs of workflows: path below the folder of the definitions -> text.
    """

    entity: str
    warnings: list[Warned] = field(default_factory=list)
    remains: list[tuple[int, str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def warn(self, line: int, name: str, message: str) -> None:
        self.warnings.append(Warned(line, name, message))

    def leave_out(self, element: Element, name: str, message: str) -> None:
        inner = named_in(element)
        self.warn(element.line, name, message + (f" (with {inner})" if inner else ""))
        self.remains.append((element.line, original(element)))
        _take_all(element)


@dataclass(frozen=True)
class Found:
    """An element or attribute that matches a rule.

    Attributes:
        name: Its path, such as ``feed/clusters/cluster/@delay``.
        element: The element, or the one with the attribute.
        attribute: None: the rule is for the element.
        parents: The root first.
    """

    name: str
    element: Element
    attribute: Attribute | None
    parents: tuple[Element, ...]

    @property
    def line(self) -> int:
        return self.attribute.line if self.attribute else self.element.line

    @property
    def text(self) -> str:
        return (self.attribute.value if self.attribute else self.element.text).strip()


Convert: TypeAlias = "Callable[[Found, Conversion], Value | None]"


def as_text(found: Found, conversion: Conversion) -> Value | None:
    """Returns None where the text is empty, which means that it is missing."""
    return found.text or None


@dataclass(frozen=True)
class Rule:
    """The counterpart of the elements or attributes at ``source``.

    Attributes:
        source: Their path: ``clusters/cluster``, ``location[type=data]/@path``.
        key: The key in YAML, dotted, ``[]`` at the end for lists; "" = there is none.
        convert: Returns the value; None: it is left out, after a warning.
        rules: For elements inside, where the value is a mapping.
        advice: For the user, where there is no key.
    """

    source: str
    key: str = ""
    convert: Convert = as_text
    rules: tuple[Rule, ...] = ()
    advice: str = ""


def apply(
    rules: Sequence[Rule], element: Element, conversion: Conversion, name: str, parents: tuple[Element, ...] = ()
) -> Keys:
    """Applies rules to an element, and marks it as taken."""
    keys: Keys = {}
    element.taken = True
    for rule in rules:
        for found in list(_select(element, rule.source, name, (*parents, element))):
            if not rule.key:
                _no_counterpart(found, rule.advice, conversion)
            elif rule.key.endswith("[]") or not _is_taken(found):
                _convert(rule, found, keys, conversion)
                if not rule.key.endswith("[]"):
                    break
    return keys


def put(keys: Keys, key: str, node: Node) -> Node | None:
    """Writes a value to a dotted key, into a list where it ends with ``[]``; returns the replaced value."""
    first, _, rest = key.partition(".")
    if rest:
        inner = keys.setdefault(first, Node({}, node.line)).value
        return put(inner, rest, node) if isinstance(inner, dict) else None
    if first.endswith("[]"):
        items = keys.setdefault(first[:-2], Node([], node.line)).value
        if isinstance(items, list):
            items.append(node)
        return None
    before = keys.get(first)
    if before is not None and isinstance(before.value, dict) and isinstance(node.value, dict):
        before.value.update(node.value)
        return None
    keys[first] = node
    return before


def tell_the_rest(element: Element, conversion: Conversion, name: str) -> None:
    """Warns about everything that no rule has taken."""
    for attribute in element.attributes:
        if not attribute.taken:
            conversion.warn(attribute.line, f"{name}/@{attribute.name}", UNKNOWN.format(what="attribute"))
            conversion.remains.append((attribute.line, f"{name}/{original(attribute, element)}"))
    if element.text.strip() and not element.text_taken:
        conversion.warn(element.line, name, "Apache Falcon ignores text in this element: it is left out")
        conversion.remains.append((element.line, f"{name}: {' '.join(element.text.split())}"))
    for child in element.children:
        path = f"{name}/{child.name}"
        if child.taken:
            tell_the_rest(child, conversion, path)
            if not (child.attributes or child.children or child.text.strip()):
                conversion.warn(child.line, path, "it is empty: it is left out")
        else:
            conversion.leave_out(child, path, UNKNOWN.format(what="element"))


def _convert(rule: Rule, found: Found, keys: Keys, conversion: Conversion) -> None:
    around = [one for outer in found.parents[1:] for one in outer.claim_comments()]
    own = found.element.claim_comments()
    value: Value | None
    if rule.rules:
        value = apply(rule.rules, found.element, conversion, found.name, found.parents)
    else:
        value = rule.convert(found, conversion)
    _take(found, with_text=not rule.rules)
    if value is None or (value in ({}, []) and not rule.key.endswith("[]")):
        found.element.comments = [*around, *own]
        if value is None and found.text:
            _remains(found, conversion)
        return
    before = put(keys, rule.key, Node(value, found.line, own))
    first = rule.key.partition(".")[0]
    outermost = keys[first if first in keys else first.removesuffix("[]")]
    outermost.comments = [*around, *outermost.comments]
    if before is not None:
        conversion.warn(before.line, rule.key, f"line {found.line} of the XML gives it again, and is used instead")
        conversion.remains.append((before.line, f"{rule.key}: {before.value}"))


def _no_counterpart(found: Found, advice: str, conversion: Conversion) -> None:
    if found.attribute is None:
        if not found.element.taken:
            conversion.leave_out(found.element, found.name, advice)
    elif not found.attribute.taken:
        conversion.warn(found.line, found.name, advice)
        _remains(found, conversion)
        _take(found, with_text=False)


def _remains(found: Found, conversion: Conversion) -> None:
    thing = original(found.attribute, found.element) if found.attribute else original(found.element)
    conversion.remains.append((found.line, f"{found.name.rpartition('/')[0]}/{thing}" if found.attribute else thing))


def _is_taken(found: Found) -> bool:
    return found.attribute.taken if found.attribute else found.element.taken


def _take(found: Found, *, with_text: bool) -> None:
    for outer in found.parents[1:]:
        outer.taken = True
    found.element.taken = True
    if found.attribute is not None:
        found.attribute.taken = True
    elif with_text:
        found.element.text_taken = True


def _take_all(element: Element) -> None:
    for one in element.all():
        one.taken = one.text_taken = True
        for attribute in one.attributes:
            attribute.taken = True


def _select(element: Element, source: str, name: str, parents: tuple[Element, ...]) -> Iterator[Found]:
    """Yields the targets of the path, in the order of the text."""
    step, _, rest = source.partition("/")
    if step.startswith("@"):
        attribute = element.attribute(step[1:])
        if attribute is not None:
            yield Found(f"{name}/{step}", element, attribute, parents[:-1])
        return
    said = _STEP.fullmatch(step)
    if said is None:
        raise ValueError(f"{source!r} is not a way to an element")
    for child in element.named(said[1]):
        kind = child.attribute(said[2]) if said[2] else None
        if said[2] and (kind is None or kind.value.strip() != said[3]):
            continue
        if kind is not None:
            kind.taken = True
        path = f"{name}/{child.name}"
        if rest:
            child.taken = True
            yield from _select(child, rest, path, (*parents, child))
        else:
            yield Found(path, child, None, parents)
