"""What may be left out of a definition when it is refused: without it the same data is made, from the same data."""

from __future__ import annotations

import re
from collections.abc import Sequence

from falcon_assets.falcon_xml.yaml_text import Keys

_OPTIONAL = (
    r"(description|colo)",
    r"(acl)\b.*",
    r"(sla|timeout|lifecycle|late_process|retry)\b.*",
    r"(groups|pipelines|notification)\b.*",
    r"(clusters)\[(\d+)\]\.(sla|lifecycle|delay)\b.*",
    r"(locations)\.(stats|meta)",
    r"(clusters)\[(\d+)\]\.(locations)\.(stats|meta)",
    r"(interfaces)\.(readonly|registry|messaging)\b.*",
    r"(workflow)\.(args|name|version)\b.*",
)
"""Key paths; their groups lead to what is left out."""
_FOLDERS = r"(locations)(\.(staging|working))?"
"""Of a cluster: folders that are this product's own."""
_MAPS = ("properties", "tags")


def optional_key(keys: Keys, path: str) -> tuple[Keys, str] | None:
    """The mapping and the key in it to leave out because of a problem at ``path``; None where it must not be."""
    for name in _MAPS:
        if path.startswith(f"{name}."):
            return _at(keys, (name, path.removeprefix(f"{name}.")))
    if keys["kind"].value == "cluster" and re.fullmatch(_FOLDERS, path):
        return _at(keys, ("locations",))
    for pattern in _OPTIONAL:
        found = re.fullmatch(pattern, path)
        if found is not None:
            return _at(keys, found.groups())
    return None


def _at(keys: Keys, way: Sequence[str]) -> tuple[Keys, str] | None:
    value: object = keys
    for step in way[:-1]:
        if isinstance(value, dict) and step in value:
            value = value[step].value
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)].value
        else:
            return None
    return (value, way[-1]) if isinstance(value, dict) and way[-1] in value else None
