"""What shells complete, and that it takes no second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from falcon_assets.catalog.declared import declared_names
from falcon_assets.surface.cli.completing import MANY, TAKES, kinds_asked
from tests.cli.test_help import ALL

PROGRAM = """
import atexit, sys
from falcon_assets.surface.cli.main import main
atexit.register(lambda: print(sorted({'dagster', 'pyspark', 'sqlalchemy'} & sys.modules.keys()), file=sys.stderr))
sys.argv[0] = 'falcon'
main()
"""
RUNS = ("process", "feed")


@pytest.mark.parametrize(
    ("typed", "kinds"),
    {
        "instance rerun": RUNS,
        "instance rerun --start 2013-01-01T00:00Z": RUNS,
        "instance rerun --start=2013-01-01T00:00Z": RUNS,
        "instance rerun make": None,
        "instance rerun make --start": None,
        "instance rerun make --cluster": ("cluster",),
        "entity touch make": ("cluster", "datasource", "flow", "feed", "process"),
        "admin root adopt": ("cluster",),
        "run --process": ("process",),
        "instance": None,
        "": None,
    }.items(),
)
def test_of_what_a_name_comes_next(typed: str, kinds: tuple[str, ...] | None) -> None:
    assert kinds_asked(typed.split()) == kinds


def test_the_commands_whose_first_argument_is_a_name() -> None:
    arguments = {words: [one for one in ALL[words].command.params if isinstance(one, click.Argument)] for words in ALL}
    named = ("name", "names", "given", "process", "feed", "entity", "cluster")
    takes = {words for words, those in arguments.items() if those and those[0].name in named}
    files = {f"entity {name}" for name in ("submit", "update", "apply", "submit-and-schedule")}
    files |= {f"flow {name}" for name in ("submit", "update", "compile")}
    of_logins = {
        f"admin {name}" for name in ("token create", "token revoke", "user add", "user password", "user remove")
    }
    assert set(TAKES) == takes - files - of_logins - {"lineage export"}
    assert {words for words in TAKES if arguments[words][0].nargs == -1} == set(MANY)


def test_names_are_read_off_the_texts(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "kind: feed # of\nname: 'raw'\nx:\n  name: y\n--- # next\nname: make\nkind: process\n"
    )
    (tmp_path / "b.yml").write_text("no: [definition")
    assert list(declared_names(tmp_path)) == [("feed", "raw"), ("process", "make")]


def complete(folder: Path, words: str) -> tuple[str, str]:
    typed = ["falcon", *words.split(" ")]
    asked = {"_FALCON_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1)}
    environ = {**os.environ, **asked, "FALCON_ENTITY_DEFS": str(folder)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def test_nothing_heavy_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: feed\nname: raw\n---\nkind: process\nname: make\n")
    assert complete(tmp_path, "instance rerun ma") == ("plain,make\n", "[]\n")
    assert complete(tmp_path, "instance rer") == ("plain,rerun\n", "[]\n")
    assert complete(tmp_path, "comp") == ("plain,completion\n", "[]\n")


def test_codes_of_reasons(tmp_path: Path) -> None:
    said, _ = complete(tmp_path, "instance list --reason inputs_")
    assert said == "plain,inputs_missing\nplain,inputs_timed_out\n"
