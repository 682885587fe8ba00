"""Parts that can be left out of a refused definition: without them it computes the same data from the same data.

Only imports and exports are left out all the same: what they name may be in no XML that can be imported.
"""

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
    r"(clusters)\[(\d+)\]\.(import|export)\b.*",
    r"(locations)\.(stats|meta)",
    r"(clusters)\[(\d+)\]\.(locations)\.(stats|meta)",
    r"(interfaces)\.(readonly|registry|messaging)\b.*",
    r"(workflow)\.(args|name|version)\b.*",
)
"""Key paths, the first match counts; the groups lead to the part that is left out."""
_FOLDERS = r"(locations)(\.(staging|working))?"
"""Of a cluster: folders that only this product uses."""
_MAPS = ("properties", "tags")


@dataclass(frozen=True)
class OptionalPart:
    """A part that can be left out, in ``owner``; ``key`` is its own key, or that of the list that it is in."""

    name: str
    key: str
    node: Node
    owner: Keys | list[Node]

    @property
    def shown(self) -> str:
        """Returns its name in a sentence about a problem, where that is not its subject anyway."""
        return self.name if isinstance(self.owner, list) else "it"

    def remove(self) -> bool:
        """Returns False where it was removed before."""
        if isinstance(self.owner, dict):
            return self.owner.pop(self.key, None) is not None
        left = [one for one in self.owner if one is not self.node]
        was_there = len(left) < len(self.owner)
        self.owner[:] = left
        return was_there


def optional_part(keys: Keys, path: str) -> OptionalPart | None:
    """Returns the smallest part that can be left out because of a problem at ``path``; None: there is none."""
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
