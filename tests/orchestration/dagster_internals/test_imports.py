"""Every private name that we import is still there; imported by its name only, so that the others can say theirs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.processes import CHECKOUT

PACKAGE = CHECKOUT / "falcon_assets" / "history" / "dagster_internals"


class Needed(NamedTuple):
    """A name of Dagster's, which of our modules imports it, and the reason that stands there."""

    module: str
    name: str
    user: str
    reason: str


def needed() -> Iterator[Needed]:
    for file in sorted(PACKAGE.glob("*.py")):
        lines = file.read_text().splitlines()
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dagster"):
                for alias in node.names:
                    yield Needed(node.module or "", alias.name, file.stem, _reason(lines, alias.lineno - 1))


def _reason(lines: list[str], line: int) -> str:
    """The comment behind the import, or above it."""
    text = lines[line].partition("  # ")[2]
    above = line - 1
    while not text.startswith("# ") and lines[above].startswith("# "):
        text = f"{lines[above][2:]} {text}".strip()
        above -= 1
    return text


@pytest.mark.parametrize("one", list(needed()), ids=lambda one: f"{one.module}.{one.name}")
def test_what_we_import_is_there(one: Needed) -> None:
    try:
        there = hasattr(importlib.import_module(one.module), one.name)
    except ImportError:
        there = False
    assert there, f"Dagster has no {one.module}.{one.name} any more, which {one.user}.py needs: {one.reason}"


@pytest.mark.parametrize("one", list(needed()), ids=lambda one: f"{one.module}.{one.name}")
def test_what_we_import_has_a_reason(one: Needed) -> None:
    assert one.reason or "." not in one.module, f"say in {one.user} why {one.name} is imported"


def test_what_runs_import_late_is_there() -> None:
    from falcon_assets.history.dagster_internals.launching import RUN_MODULES

    for module in RUN_MODULES:
        assert importlib.util.find_spec(module), f"Dagster has no module {module} any more: runs start without it, cold"


def test_dagster_yaml_names_what_there_is() -> None:
    """It names Dagster's class for artifacts, by the path that Dagster documents."""
    from dagster._core.instance.ref import InstanceRef

    ref = InstanceRef.from_dir(str(CHECKOUT))
    assert ref.local_artifact_storage.base_dir == ".falcon/dagster", "Dagster takes another class for artifacts now"
