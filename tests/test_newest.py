"""Tested versions: what `make newest` says of others, and that constraints.txt goes with pyproject.toml."""

from __future__ import annotations

import re
import tomllib

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.newest import changed
from tests.processes import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
CONSTRAINTS = [Requirement(line) for line in (CHECKOUT / "constraints.txt").read_text().splitlines()]


def test_what_changed_is_named() -> None:
    before = {"dagster": "1.13.27", "pyyaml": "6.0.3", "left": "1"}
    after = {"dagster": "1.13.27", "pyyaml": "6.0.4", "came": "2"}
    assert changed(before, after) == ["came none -> 2", "left 1 -> none", "pyyaml 6.0.3 -> 6.0.4"]


def test_every_dependency_has_a_tested_version_that_is_allowed() -> None:
    here = {
        canonicalize_name(one.name): str(one.specifier).removeprefix("==")
        for one in CONSTRAINTS
        if one.marker is None or one.marker.evaluate(dict(default_environment()))
    }
    asked = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    wrong = [
        text
        for text, one in ((text, Requirement(text)) for text in asked)
        if not one.specifier.contains(here.get(canonicalize_name(one.name), ""), prereleases=True)
    ]
    assert wrong == []


def test_constraints_are_names_and_versions_only() -> None:
    line = re.compile(r"[a-z0-9-]+==[0-9][^\s/:]*( ; [^/:]*)?")
    assert [one for one in (CHECKOUT / "constraints.txt").read_text().splitlines() if not line.fullmatch(one)] == []
