from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.features.falcon_xml.definitions import ALL, PROCESS, changed
from tests.processes import environ_with, falcon_here

Here: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


def falcon(*arguments: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command as a whole process, in ``folder``."""
    command = [sys.executable, "-c", "from falcon_assets.surface.cli.main import main; main()", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environ_with(**environ), capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "xml").mkdir()
    for name, text in ALL.items():
        (tmp_path / "xml" / name).write_text(text)
    return tmp_path


@pytest.fixture
def here(folder: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Here:
    """The command in this process, in ``folder``; it is audited in the tests' database, so none is started for it."""
    monkeypatch.chdir(folder)
    return partial(falcon_here, environ_with(FALCON_DATABASE_URL=database))


def test_what_is_imported_is_valid(folder: Path, here: Here, database: str) -> None:
    done = falcon("import", "xml", "xml", folder=folder, LC_ALL="C", FALCON_DATABASE_URL=database)
    assert (done.returncode, done.stderr) == (0, "")
    *warnings, last, reload = done.stdout.splitlines()
    assert reload.startswith("Dagster was not asked to reload the code location")
    assert last == f"4 entities imported into entity_defs; {len(warnings)} warnings"
    assert (
        "xml/join.xml:28: process/workflow/@lib: its jars lie on the cluster: copy them into the folder of the "
        "definitions, and name them in lib"
    ) in warnings
    assert here("validate").stdout == "1 cluster, 2 feeds, 1 process: no problems\n"
    audit = json.loads(here("admin", "audit", "--json").stdout)["items"]
    assert [(one["operation"], one["result"], len(one["entities"])) for one in audit] == [("import", "done", 4)]
    again = here("import", "xml", "xml")
    assert again.stdout == "0 entities imported into entity_defs, 4 already there, just so; 0 warnings\n"


def test_json(here: Here) -> None:
    done = here("import", "xml", "xml/cluster.xml", "xml/joined.xml", "--into", "defs", "--json")
    shown = json.loads(done.stdout)
    assert shown["entities"] == [
        {"name": "primary", "kind": "cluster", "file": "defs/clusters/primary.yaml"},
        {"name": "joined", "kind": "feed", "file": "defs/feeds/joined.yaml"},
    ]
    assert list(shown) == ["entities", "warnings"]
    assert {tuple(one) for one in shown["warnings"]} == {("file", "line", "name", "message")}


def test_problems_of_what_was_written(folder: Path, here: Here) -> None:
    (folder / "xml" / "join.xml").write_text(changed(PROCESS, 'feed="joined"', 'feed="jointed"'))
    done = here("import", "xml", "xml", "--json")
    problem = "unknown feed 'jointed' (did you mean 'joined'?)"
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: xml/join.xml:22: outputs[0].feed: {problem}\n1 problem in what was imported\n",
    )
    told = {"file": "xml/join.xml", "line": 22, "name": "outputs[0].feed", "message": problem}
    assert told in json.loads(done.stdout)["warnings"]
    assert problem in here("validate").stdout


def test_hostile_xml_is_refused_in_a_sentence(folder: Path) -> None:
    (folder / "xml" / "bad.xml").write_text('<!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<feed/>')
    done = falcon("import", "xml", "xml", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: xml/bad.xml:1: a DOCTYPE is not read, as it may hide entities that grow without end or read other "
        "files: remove it\n1 problem: nothing was written\n"
    )
    assert {path.name for path in folder.iterdir()} == {"xml", ".falcon"}  # where it is audited


def test_usage(here: Here) -> None:
    assert here("import", "xml").returncode == 2
    nowhere = here("import", "xml", "nowhere")
    assert (nowhere.returncode, nowhere.stderr) == (
        1,
        "Error: nowhere:1: the file cannot be read: No such file or directory\n1 problem: nothing was written\n",
    )
