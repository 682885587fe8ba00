"""Parts of the XML that were not imported: kept as comments, without secrets."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from falcon_assets.features.falcon_xml.elements import Attribute, Element

_SECRET = re.compile(r"pass(word|wd|phrase)|secret|token|credential|access.?key", re.IGNORECASE)
_STARS = "****"
_MOST_NAMES = 40


def is_secret(name: str) -> bool:
    return bool(_SECRET.search(name))


def original(thing: Element | Attribute, owner: Element | None = None) -> str:
    if isinstance(thing, Attribute):
        return f"@{_attribute(thing, owner)}"
    return "\n".join(_lines(thing))


def named_in(element: Element) -> str:
    names = dict.fromkeys(
        name
        for one in element.all()
        for name in [*([] if one is element else [one.name]), *(f"@{attribute.name}" for attribute in one.attributes)]
    )
    shown = list(names)[:_MOST_NAMES]
    return ", ".join([*shown, *(["..."] if len(names) > len(shown) else [])])


def _attribute(attribute: Attribute, owner: Element | None, within: bool = False) -> str:
    # A pair says by its name what its value is.
    names = [attribute.name, *(one.value for one in (owner.attributes if owner else ()) if one.name == "name")]
    hidden = attribute.name != "name" and (within or any(map(is_secret, names)))
    return f"{attribute.name}={quoteattr(_STARS if hidden else attribute.value)}"


def _lines(element: Element, within: bool = False) -> list[str]:
    """``within``: the element is in one that is secret by its name."""
    within = within or is_secret(element.name)
    tag = " ".join([element.name, *(_attribute(one, element, within) for one in element.attributes)])
    text = escape(" ".join(element.text.split()))
    if text and within:
        text = _STARS
    if not element.children:
        return [f"<{tag}>{text}</{element.name}>" if text else f"<{tag}/>"]
    inner = [f"  {line}" for child in element.children for line in _lines(child, within)]
    return [f"<{tag}>", *([f"  {text}"] if text else []), *inner, f"</{element.name}>"]
