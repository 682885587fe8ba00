"""The example as a program, and its entities with execute endpoints of the tests' own."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from tests.processes import CHECKOUT, environ_with

PROGRAM = (sys.executable, "-m", "examples.flights")

_ENDPOINT = re.compile(r'(execute: \{endpoint: )"[^"]+"')


def copy_demo(folder: Path, **endpoints: str) -> Path:
    """A copy of ``entity_defs`` below ``folder``, with these execute endpoints, by name of the cluster."""
    copy = folder / "entity_defs"
    shutil.copytree(CHECKOUT / "entity_defs", copy)
    for cluster, endpoint in endpoints.items():
        file = copy / "clusters" / f"{cluster}.yaml"
        text, changed = _ENDPOINT.subn(rf'\1"{endpoint}"', file.read_text())
        assert changed == 1, file
        file.write_text(text)
    return copy


def example_environ(**given: str) -> dict[str, str]:
    """What the example's program is told in a folder that is not the checkout."""
    return environ_with(PYTHONPATH=str(CHECKOUT), **given)
