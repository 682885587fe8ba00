"""``falcon instance triage``: a tree for people, JSON for programs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.features.triage import answers as triage_answers
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from tests.features.triage.test_triage import ENTITIES
from tests.hours import hour
from tests.operations.rows import feed_row, process_row, write
from tests.processes import FALCON, falcon_here

ASKED = ("instance", "triage", "sum-up", "2013-01-01T20:00Z")
TREE = """\
sum-up 2013-01-01T20:00Z on primary WAITING: waits for in-clean: clean 2013-01-01T05:00Z, in-clean: clean \
2013-01-01T06:00Z, in-clean: clean 2013-01-01T09:00Z
|-- feed clean 2013-01-01T05:00Z on primary MISSING: is made by cleanse
|   |-- ... and 1 more like this one, the last is 2013-01-01T06:00Z
|   `-- cleanse 2013-01-01T05:00Z on primary FAILED: failed after 2 attempts: no such column [x]
|       |-- ... and 1 more like this one, the last is 2013-01-01T06:00Z
|       `-- fix: falcon instance rerun cleanse --start 2013-01-01T05:00Z --end 2013-01-01T06:00Z --status FAILED \
--cluster primary
`-- feed clean 2013-01-01T09:00Z on primary MISSING: is made by cleanse
    `-- cleanse 2013-01-01T09:00Z on primary WAITING: waits for in-raw: raw 2013-01-01T09:00Z
        `-- feed raw 2013-01-01T09:00Z on primary MISSING: has not come to {home}/data/primary/raw/2013-01-01/09: \
13 h 30 min late by its SLA (high: hours(2))
            `-- fix: falcon instance collect raw --start 2013-01-01T09:00Z --end 2013-01-01T09:00Z --cluster primary
failed: 2 (cleanse)
not_arrived: 1 (raw)
"""


@pytest.fixture(scope="module")
def environ(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> dict[str, str]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    clock = {"FALCON_CLOCK": "2013-01-02T00:30Z"}
    failed = {"failures": 2, "attempt": 2, "reason": "no such column [x]\nat line 3", "ended": hour(6)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*next(iter(clock.items())))
        with open_installation() as installation:
            there = [feed_row("clean", number) for number in range(21) if number not in (5, 6, 9)]
            write(installation, *there, *(process_row("cleanse", number, "FAILED", **failed) for number in (5, 6)))
    return {**os.environ, **clock}


def test_a_tree_in_a_pipe_without_unicode(environ: dict[str, str], settings: Settings) -> None:
    own = {**environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([FALCON, *ASKED], env=own, cwd=settings.home, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rstrip() for line in done.stdout.replace("+--", "|--").splitlines()]
    wanted = TREE.format(home=settings.home).replace("`--", "|--").splitlines()
    assert [line.replace("`--", "|--") for line in lines] == wanted


def test_nothing_is_cut_off_in_a_narrow_terminal(environ: dict[str, str], settings: Settings) -> None:
    own = {**environ, "FORCE_COLOR": "1", "COLUMNS": "60", "TERM": "xterm"}
    shown = falcon_here(own, *ASKED).stdout
    plain = re.sub(r"[\s│├└─]|\x1b\[[0-9;]*m", "", shown)
    wanted = re.sub(r"[\s|`-]", "", TREE.format(home=settings.home))
    assert plain.replace("-", "") == wanted
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines())) <= 60


def test_json(environ: dict[str, str]) -> None:
    found = json.loads(falcon_here(environ, *ASKED, "--json").stdout)
    assert (found["entity"], found["state"], len(found["causes"])) == ("sum-up", "WAITING", 2)


def test_each_fix_is_a_command(environ: dict[str, str]) -> None:
    def fixes(one: dict[str, Any]) -> list[str]:
        return [*([one["fix"]] if one["fix"] else []), *(fix for cause in one["causes"] for fix in fixes(cause))]

    again, landed = fixes(json.loads(falcon_here(environ, *ASKED, "--json").stdout))
    done = falcon_here(environ, *shlex.split(again)[1:])
    assert (done.returncode, "2 instances asked to run again" in done.stdout) == (0, True)
    assert falcon_here(environ, *shlex.split(landed)[1:]).returncode == 0
    for noun, verb in (("instance", "resume"), ("entity", "schedule"), ("entity", "resume")):
        assert falcon_here(environ, noun, verb, "--help").returncode == 0


def test_a_store_that_refuses_makes_it_an_error(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise StorageError("cluster 'primary': cannot look at /raw: permission denied")

    monkeypatch.setattr(triage_answers, "is_there", refuse)
    for options in ((), ("--json",)):
        done = falcon_here(environ, *ASKED, *options)
        assert (done.returncode, done.stderr) == (
            1,
            "Error: not everything could be looked at: cluster 'primary': cannot look at /raw: permission denied\n",
        )
        assert "its store cannot be asked: cluster 'primary'" in " ".join(done.stdout.split())
        assert "instance collect" not in done.stdout  # it would fix nothing


def test_what_is_not_there_to_ask_about(environ: dict[str, str]) -> None:
    done = falcon_here(environ, "instance", "triage", "sum-dwn", "2013-01-01T20:00Z")
    assert (done.returncode, done.stderr) == (
        1,
        "Error: there is no process or feed 'sum-dwn' (did you mean 'sum-up'?)\n",
    )
    done = falcon_here(environ, "instance", "triage", "sum-up", "2013-01-01T20:30Z")
    assert done.returncode == 1
    assert "has no instance 2013-01-01T20:30Z: its frequency is hours(1)" in done.stderr
