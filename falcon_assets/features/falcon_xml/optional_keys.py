"""What may be left out of a definition when it is refused: without it the same data is made, from the same data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from falcon_assets.features.falcon_xml.yaml_text import Keys, Node

_OPTIONAL = (
    r"(description|colo)",
    r"(acl)\.(group|permission)\b.*",
    r"(acl)\b.*",
    r"(late_process)\.(inputs)\[(\d+)\].*",
    r"(late_process)\.(delay)",
    r"(retry)\.(policy|delay|attempts|on_timeout)",
    r"(notification)\.(to|on)\[(\d+)\].*",
    r"(groups|pipelines)\[(\d+)\].*",
    r"(sla|timeout|lifecycle|late_process|retry)\b.*",
    r"(groups|pipelines|notification)\b.*",
    r"(clusters)\[(\d+)\]\.(sla|lifecycle|delay)\b.*",
    r"(locations)\.(stats|meta)",
    r"(clusters)\[(\d+)\]\.(locations)\.(stats|meta)",
    r"(interfaces)\.(readonly|registry|messaging)\b.*",
    r"(workflow)\.(args|name|version)\b.*",
)
"""Key paths, the first that fits counts; their groups lead to what is left out."""
_FOLDERS = r"(locations)(\.(staging|working))?"
"""Of a cluster: folders that are this product's own."""
_MAPS = ("properties", "tags")


@dataclass(frozen=True)
class OptionalPart:
    """A part that may be left out.

    Attributes:
        name: The way to it.
        key: Its own key; of an entry of a list, that of the list.
        node: The part.
        owner: What it is in.
    """

    name: str
    key: str
    node: Node
    owner: Keys | list[Node]

    @property
    def shown(self) -> str:
        """What it is called in a sentence, where that is not all that the sentence speaks of."""
        return self.name if isinstance(self.owner, list) else "it"

    def remove(self) -> bool:
        """Takes it out; False where it is out already."""
        if isinstance(self.owner, dict):
            return self.owner.pop(self.key, None) is not None
        left = [one for one in self.owner if one is not self.node]
        was_there = len(left) < len(self.owner)
        self.owner[:] = left
        return was_there


def optional_part(keys: Keys, path: str) -> OptionalPart | None:
    """The least that may be left out because of a problem at ``path``; None where nothing may."""
    for name in _MAPS:
        if path.startswith(f"{name}."):
            return _at(keys, (name, path.removeprefix(f"{name}.")))
    if keys["kind"].value == "cluster" and re.fullmatch(_FOLDERS, path):
        return _at(keys, ("locations",))
    for pattern in _OPTIONAL:
        found = re.fullmatch(pattern, path)
        part = _at(keys, found.groups()) if found is not None else None
        if part is not None:
            return part
    return None


def _at(keys: Keys, way: Sequence[str]) -> OptionalPart | None:
    owner: object = keys
    for position, step in enumerate(way):
        name = "".join(f"[{one}]" if one.isdigit() else f".{one}" for one in way[: position + 1]).lstrip(".")
        if isinstance(owner, dict) and step in owner:
            part = OptionalPart(name, step, owner[step], owner)
        elif isinstance(owner, list) and step.isdigit() and int(step) < len(owner):
            part = OptionalPart(name, way[position - 1], owner[int(step)], owner)
        else:
            return None
        owner = part.node.value
    return part
