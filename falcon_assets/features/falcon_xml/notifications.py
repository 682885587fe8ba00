"""Conversion of notifications: receivers of mail."""

from __future__ import annotations

import re

from falcon_assets.features.falcon_xml.remains import original
from falcon_assets.features.falcon_xml.rules import Conversion, Found
from falcon_assets.features.falcon_xml.yaml_text import Keys, Node, Value

_EVENTS = ("FAILED", "TIMED_OUT", "SUCCEEDED")
"""Falcon sent mail when an instance ended."""


def notification(found: Found, conversion: Conversion) -> Value | None:
    """Returns receivers as variables that the user must set: the mail server was known to Falcon's servers only."""
    said = {one.name: one.value.strip() for one in found.element.attributes}
    addresses = list(dict.fromkeys(filter(None, (one.strip() for one in said.get("to", "").split(",")))))
    if said.get("type") != "email" or not addresses:
        conversion.leave_out(found.element, found.name, "it names nobody who is sent mail: it is left out")
        return None
    for attribute in found.element.attributes:
        attribute.taken = attribute.name in ("type", "to")
        if attribute.name == "level":
            attribute.taken = True
            conversion.warn(attribute.line, f"{found.name}/@level", "a failure is told once no retry follows")
    receivers: list[Node] = []
    for address in addresses:
        name = f"MAIL_{re.sub(r'[^A-Z0-9]+', '_', address.upper()).strip('_')}"
        url: Keys = {"env": Node(name, found.line)}
        receiver: Keys = {"url": Node(url, found.line)}
        receivers.append(Node(receiver, found.line))
        how = f"mailtos://USER:PASSWORD@SMTP_SERVER?to={address}"
        conversion.warn(found.line, f"{found.name}/@to", f"set the environment variable {name} for the daemon: {how}")
    events = [Node(event, found.line) for event in _EVENTS]
    return {"on": Node(events, found.line, [original(found.element)]), "to": Node(receivers, found.line)}
