"""The entities of the demo, for tests that compute: nobody may depend on what listens at the demo's own port."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.processes import CHECKOUT

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
