"""Spellings of Ivory, the predecessor of Falcon, converted to those of Falcon's schemas."""

from __future__ import annotations

import re

from falcon_assets.features.falcon_xml.elements import Attribute, Element

_ELEMENTS = {"concurrency": "parallel", "execution": "order"}
_ATTRIBUTES = {
    "input": {"start-instance": "start", "end-instance": "end"},
    "workflow": {"libpath": "lib"},
}
_UNITS = ("minutes", "hours", "days", "months")


def modernise(root: Element) -> None:
    """Renames older spellings in place; lines and comments stay."""
    if root.name == "process":
        for child in root.children:
            child.name = _ELEMENTS.get(child.name, child.name)
    for element in root.all():
        for attribute in element.attributes:
            attribute.name = _ATTRIBUTES.get(element.name, {}).get(attribute.name, attribute.name)
        delay, unit = element.attribute("delay"), element.attribute("delayUnit")
        if delay and unit and re.fullmatch(r"[0-9]+", delay.value) and unit.value in _UNITS:
            delay.value = f"{unit.value}({delay.value})"
            element.attributes.remove(unit)
    _periodicity(root)
    _one_validity(root)


def _periodicity(root: Element) -> None:
    """Joins ``<frequency>hours</frequency><periodicity>1</periodicity>``."""
    frequencies, counts = root.named("frequency"), root.named("periodicity")
    is_plain = len(frequencies) == len(counts) == 1 and not counts[0].children and not counts[0].attributes
    if is_plain and frequencies[0].text.strip() in _UNITS:
        frequencies[0].text = f"{frequencies[0].text.strip()}({counts[0].text.strip()})"
        frequencies[0].comments += counts[0].claim_comments()
        root.children.remove(counts[0])


def _one_validity(root: Element) -> None:
    """Moves the one validity of a process to each of its clusters."""
    validities, alone = root.named("validity"), root.named("cluster")
    if root.name != "process" or len(validities) != 1:
        return
    validity = validities[0]
    if validity.children or validity.text.strip():
        return
    for attribute in [one for one in validity.attributes if one.name == "timezone"]:
        if attribute.value != "UTC" or root.named("timezone"):
            return
        validity.attributes.remove(attribute)
        zone = Element("timezone", root.namespace, attribute.line, text=attribute.value)
        root.children.append(zone)
    if alone and not root.named("clusters"):
        root.children = [one for one in root.children if one not in alone]
        root.children.append(Element("clusters", root.namespace, alone[0].line, children=alone))
    clusters = [cluster for outer in root.named("clusters") for cluster in outer.named("cluster")]
    if clusters:
        root.children.remove(validity)
        clusters[0].comments += validity.claim_comments()
    for cluster in clusters:
        copied = [Attribute(one.name, one.value, one.line) for one in validity.attributes]
        cluster.children.append(Element("validity", validity.namespace, validity.line, attributes=copied))
