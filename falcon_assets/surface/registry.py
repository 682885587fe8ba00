"""The registry of operations: commands, jobs and the Python API derive from it.

An operation is in it as soon as its class has a ``command``. It is found in the text of its module, so that nobody
imports what takes seconds to list what there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import falcon_assets
from falcon_assets import features

if TYPE_CHECKING:
    from falcon_assets.operations.operation import Operation

_PARTS = ("operations", "instances/operations", "doctor", "surface/foreground")
"""Folders of the core with operations."""
_COMMAND = "\n    command = "
_CLASS_OR_COMMAND = re.compile(r'^class (\w+)|^    command = "(.+)"$', re.MULTILINE)
_BASES = re.compile(r"^class (\w+)\((.*)\):$", re.MULTILINE)


@dataclass(frozen=True)
class DeclaredOperation:
    module: str
    name: str

    def load(self) -> type[Operation]:
        found: type[Operation] = getattr(import_module(self.module), self.name)
        return found


@cache
def registry() -> Mapping[str, DeclaredOperation]:
    """Returns all operations by their command."""
    found, name = dict[str, DeclaredOperation](), ""
    for module, text in _modules():
        for one in _CLASS_OR_COMMAND.finditer(text) if _COMMAND in text else ():
            name = one[1] or name
            if one[2]:
                found[one[2]] = DeclaredOperation(module, name)
    return found


def changes(noun: str) -> list[type[Operation]]:
    """Loads the operations of a noun that are written into the audit, and no others."""
    bases = {one[1]: one[2].split(", ") for _, text in _modules() for one in _BASES.finditer(text)}

    def is_change(name: str) -> bool:
        return name == "Change" or any(map(is_change, bases.get(name, ())))

    of_noun = (one for command, one in registry().items() if command.startswith(f"{noun} "))
    return [one.load() for one in of_noun if is_change(one.name)]


def _modules() -> Iterator[tuple[str, str]]:
    """Names and texts of the modules that may have operations."""
    root = Path(falcon_assets.__file__).parent
    folders = [(root / part, f"falcon_assets.{part.replace('/', '.')}") for part in _PARTS]
    for place in map(Path, features.__path__):
        folders += [(one, f"{features.__name__}.{one.name}") for one in sorted(place.iterdir()) if one.is_dir()]
    for folder, package in folders:
        for file in sorted(folder.glob("*.py")):
            yield f"{package}.{file.stem}", file.read_text(encoding="utf-8")
