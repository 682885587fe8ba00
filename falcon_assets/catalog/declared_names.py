"""The names of entities, read off their definitions as fast as can be: shells ask for them at every Tab."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from falcon_assets.catalog.yaml_files.definition_files import definition_files

_DOCUMENTS = re.compile(rb"^---.*$", re.MULTILINE)
_KEY = re.compile(rb"""^(kind|name)[ \t]*:[ \t]*["']?([A-Za-z][\w-]*)""", re.MULTILINE)


def declared_names(root: Path) -> Iterator[tuple[str, str]]:
    """Kind and name of each entity that is written as people write them; nothing is parsed or checked."""
    for _, content in definition_files(root, lambda _path, _why: None):
        for document in _DOCUMENTS.split(content):
            found = {key.decode(): value.decode() for key, value in _KEY.findall(document)}
            if len(found) == 2:
                yield found["kind"], found["name"]
