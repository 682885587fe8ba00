"""``falcon lineage``: trees for people, JSON and Graphviz for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from tests.features.lineage.lineage_rows import EDGES, FOREIGN, ROWS, T, made_row, version_row, write_versions
from tests.features.openlineage.schemas import assert_valid
from tests.features.triage.test_triage import ENTITIES
from tests.operations.rows import process_row, write
from tests.processes import falcon_here

AT = "2013-01-01T00:00Z"
SHOWN = """\
sums 2013-01-01T00:00Z on primary @c2  AVAILABLE  by add-up in run 00000006, definition 1
  version: c2
  lifecycle status: initial
  run: 00000006-run
  attempt: 1
  since: 2013-01-01T00:06:00+00:00
came from:
  clean 2013-01-01T00:00Z on primary @b2  AVAILABLE  by cleanse in run 01234567, definition 2, for late data
    raw 2013-01-01T00:00Z on primary @a2  AVAILABLE
  raw 2013-01-01T00:00Z on primary @a2  AVAILABLE
"""
IMPACT = """\
raw 2013-01-01T00:00Z on primary @a1: 2 versions were made from it
  clean 2013-01-01T00:00Z on primary @b1  REPLACED
  sums 2013-01-01T00:00Z on primary @c1  EVICTED (archived)
"""
AGAIN = """\
to be run again for what is there:
  cleanse 2013-01-01T00:00Z on primary
  add-up 2013-01-01T00:00Z on primary
"""
DIFF = """\
- clean 2013-01-01T00:00Z on primary @b1  REPLACED  by cleanse in run 00000003, definition 1
+ clean 2013-01-01T00:00Z on primary @b2  AVAILABLE  by cleanse in run 01234567, definition 2, for late data
  definition 1 and 2
  1 input differs
    raw 2013-01-01T00:00Z on primary: a1 -> a2
"""


@pytest.fixture(scope="module")
def environ(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> dict[str, str]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with open_installation() as installation:
        installation.ledger.catch_up()
        write_versions(installation, ROWS, EDGES)
    return {**os.environ}


def test_what_a_version_came_from(environ: dict[str, str]) -> None:
    assert falcon_here(environ, "lineage", "show", "sums", AT).stdout == SHOWN
    plain = {**environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert falcon_here(plain, "lineage", "show", "sums", AT).stdout == SHOWN


def test_both_directions_and_how_far(environ: dict[str, str]) -> None:
    asked = ("lineage", "show", "clean", "--start", AT, "--version", "b2", "--direction", "both", "--depth", "1")
    assert falcon_here(environ, *asked).stdout.split("came from:\n")[1] == (
        "  raw 2013-01-01T00:00Z on primary @a2  AVAILABLE\n"
        "(up to 1 step; --depth shows more)\n"
        "was made into:\n"
        "  sums 2013-01-01T00:00Z on primary @c2  AVAILABLE  by add-up in run 00000006, definition 1\n"
        "(up to 1 step; --depth shows more)\n"
    )
    landed = falcon_here(environ, "lineage", "show", "raw", AT).stdout.splitlines()
    assert landed[-1] == "came from nothing: it landed from outside"


def test_metadata(environ: dict[str, str]) -> None:
    shown = falcon_here(environ, "lineage", "show", "clean", AT, "--metadata").stdout.split("  raw 2013")[1]
    assert shown.splitlines()[1:] == [
        "  primary/clean/2013-01-01T00:00Z@b2 stored-in cluster:primary",
        "  primary/clean/2013-01-01T00:00Z@b2 instance-of feed:clean",
        "  primary/clean/2013-01-01T00:00Z@b2 output-of process:cleanse",
        "  cluster:primary collocated colo:default",
        "  process:cleanse runs-on cluster:primary",
        "  process:cleanse pipeline pipeline:default",
    ]
    asked = ("path", f"raw/{AT}", f"sums/{AT}", "--metadata", "--json")
    found = json.loads(falcon_here(environ, "lineage", *asked).stdout)
    assert {"id": "feed:clean", "kind": "feed", "name": "clean"} in found["nodes"]
    edge = {"from": f"primary/sums/{AT}@c2", "to": "process:add-up", "relation": "output-of"}
    assert edge in found["edges"]
    drawn = falcon_here(environ, "lineage", "impact", "raw", AT, "--metadata", "--dot").stdout
    assert '"cluster:primary" [shape=ellipse];' in drawn
    assert f'"primary/sums/{AT}@c2" -> "feed:sums" [label="instance-of", style=dashed, color=gray];' in drawn


def test_columns(environ: dict[str, str]) -> None:
    shown = falcon_here(environ, "lineage", "show", "clean", AT, "--columns").stdout
    assert shown.split("columns:\n")[1].split("came from")[0] == (
        "  total bigint from raw.a, raw.b\n"
        "  one int from nothing\n"
        "  guess string from raw.a  (not sure: it passed through code that Spark does not look into)\n"
        "rows are decided by: raw.day\n"
    )
    found = json.loads(falcon_here(environ, "lineage", "show", "clean", AT, "--json").stdout)
    assert found["version"]["columns"][0]["from"] == [{"feed": "raw", "column": "a"}, {"feed": "raw", "column": "b"}]
    assert found["version"]["rows_from"] == [{"feed": "raw", "column": "day"}]
    assert "columns: not recorded\n" in falcon_here(environ, "lineage", "show", "sums", AT, "--columns").stdout


def test_what_was_made_from_a_version(environ: dict[str, str]) -> None:
    assert falcon_here(environ, "lineage", "impact", "raw", AT, "--version", "a1").stdout == IMPACT
    assert falcon_here(environ, "lineage", "impact", "raw", AT).stdout.endswith(AGAIN)


@pytest.mark.parametrize(
    ("column", "clean"),
    [
        pytest.param("b", "total, perhaps guess", id="from which one was made"),
        pytest.param("day", "its rows, perhaps guess", id="which decides on rows"),
        pytest.param("x", "perhaps guess", id="that nobody is known to read"),
    ],
)
def test_what_depends_on_a_column(environ: dict[str, str], column: str, clean: str) -> None:
    shown = falcon_here(environ, "lineage", "impact", "raw", AT, "--column", column)
    assert shown.stdout == (
        f"raw 2013-01-01T00:00Z on primary @a2: 2 versions were made from its column {column}\n"
        f"  clean 2013-01-01T00:00Z on primary @b2  AVAILABLE: {clean}\n"
        "  sums 2013-01-01T00:00Z on primary @c2  AVAILABLE: perhaps more: not all columns are recorded\n" + AGAIN
    )
    found = json.loads(falcon_here(environ, "lineage", "impact", "clean", AT, "--column", "one", "--json").stdout)
    unknown = {"columns": [], "perhaps": [], "rows": False, "known": False}
    assert found["affected"] == {"primary/sums/2013-01-01T00:00Z@c2": unknown}
    missing = falcon_here(environ, "lineage", "impact", "clean", AT, "--column", "two")
    assert missing.returncode == 1
    assert "clean/2013-01-01T00:00Z@b2 has no column 'two': it has total, one, guess\n" in missing.stderr


def test_why_two_versions_differ(environ: dict[str, str]) -> None:
    assert falcon_here(environ, "lineage", "diff", "clean", AT).stdout == DIFF
    data = json.loads(
        falcon_here(environ, "lineage", "diff", "clean", AT, "--from", "b2", "--to", "b1", "--json").stdout
    )
    assert (data["from"]["version"], data["to"]["version"]) == ("b2", "b1")
    assert data["inputs"] == [{"cluster": "primary", "feed": "raw", "instance": AT, "from": ["a2"], "to": ["a1"]}]


def test_the_ids_of_the_graph_are_versions_for_commands(environ: dict[str, str]) -> None:
    graph = json.loads(falcon_here(environ, "lineage", "show", "sums", AT, "--json").stdout)
    ids = [node["id"] for node in graph["nodes"]]
    assert ids == [
        f"primary/{feed}/{AT}@{version}" for feed, version in (("clean", "b2"), ("raw", "a2"), ("sums", "c2"))
    ]
    shown = falcon_here(environ, "lineage", "path", ids[1], f"sums/{AT}").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["raw", "clean", "sums"]


def test_what_a_version_was_made_from_that_is_of_no_feed(environ: dict[str, str]) -> None:
    asked = ("lineage", "show", "sums", AT, "--version", "c1")
    shown = falcon_here(environ, *asked).stdout.split("came from:\n")[1].splitlines()
    assert shown[0] == f"  {FOREIGN}  of no feed  (undeclared)"
    assert [line.split()[0] for line in shown[1:]] == ["clean", "raw"]
    found = json.loads(falcon_here(environ, *asked, "--json").stdout)
    place, made = f"place:{FOREIGN}", {"process": "add-up", "run": "00000005-run", "definition": 1}
    assert {"id": place, "kind": "place", "name": FOREIGN} in found["nodes"]
    assert {"from": place, "to": f"primary/sums/{AT}@c1", **made, "declared": False} in found["edges"]
    drawn = falcon_here(environ, *asked, "--dot").stdout
    assert f'"{place}" -> "primary/sums/{AT}@c1" [label="add-up", style=dotted];' in drawn
    down = json.loads(falcon_here(environ, "lineage", "impact", "raw", AT, "--version", "a1", "--json").stdout)
    assert {node.get("kind") for node in down["nodes"]} == {None}
    told = falcon_here(environ, "lineage", "export", "--openlineage", "add-up").stdout
    assert {("s3://else", "ü </script>")} <= {
        (one["namespace"], one["name"]) for line in told.splitlines() for one in json.loads(line)["inputs"]
    }


def test_graphviz(environ: dict[str, str]) -> None:
    text = falcon_here(environ, "lineage", "show", "clean", AT, "--dot").stdout
    assert text.startswith("digraph lineage {")
    assert f'  "primary/raw/{AT}@a2" -> "primary/clean/{AT}@b2" [label="cleanse"];' in text.splitlines()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "nothing", AT), 1, "there is no feed 'nothing'"),
        (("show", "no\udcff", AT), 1, r"there is no feed 'no\udcff'"),
        (("show", "raw", AT, "--version", "\udcff"), 1, r"no version \udcff... of feed 'raw'"),
        (("show", "raw", "2013-01-01T01:00Z"), 1, "no version of feed 'raw' 2013-01-01T01:00Z is recorded"),
        (("show", "raw", AT, "--version", "z"), 1, "no version z... of feed 'raw' 2013-01-01T00:00Z is recorded"),
        (("show", "raw", AT, "--version", "a"), 1, "several versions begin with a: a1, a2"),
        (("show", "raw", AT, "--cluster", "far"), 1, "on cluster 'far' is recorded"),
        (("path", "raw", f"sums/{AT}"), 2, "'raw' is no version: write [CLUSTER/]FEED/INSTANCE[@VERSION]"),
        (("path", f"sums/{AT}", f"raw/{AT}"), 1, f"primary/raw/{AT}@a2 was not made from primary/sums/{AT}@c2"),
        (("diff", "raw", AT, "--to", "a1"), 1, "has no version before it: say which two with --from and --to"),
    ],
)
def test_what_cannot_be_answered(environ: dict[str, str], words: tuple[str, ...], code: int, said: str) -> None:
    done = falcon_here(environ, "lineage", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


STATUS = """\
sums 2013-01-01T00:00Z on primary @c2 is critical; it was initial
2 versions that it was made from:
  raw 2013-01-01T00:00Z on primary @a2  AVAILABLE
  clean 2013-01-01T00:00Z on primary @b2  AVAILABLE
"""


def test_a_critical_version(environ: dict[str, str]) -> None:
    asked = ("lineage", "status", "sums", AT, "critical", "--reason", "in the report")
    would = falcon_here(environ, *asked, "--dry-run").stdout
    assert would == STATUS.replace("is critical", "would be critical")
    assert falcon_here(environ, *asked).stdout == STATUS
    assert falcon_here(environ, *asked).stdout.startswith("sums 2013-01-01T00:00Z on primary @c2 is critical already\n")
    data = json.loads(falcon_here(environ, "lineage", "show", "sums", AT, "--json").stdout)["version"]
    told = data.pop("lifecycle_set")
    assert (data["lifecycle_status"], told["reason"]) == ("critical", "in the report")
    assert "lifecycle status: critical, by " in falcon_here(environ, "lineage", "show", "sums", AT).stdout
    audited = falcon_here(environ, "admin", "audit", "--filter", "operation=lineage status", "--json").stdout
    assert [one["result"] for one in json.loads(audited)["items"]] == ["unchanged", "done"]
    falcon_here(environ, *asked[:4], "validated", "--reason", "d\udce9j\x1b\0")
    assert "validated, by " in falcon_here(environ, "lineage", "show", "sums", AT).stdout
    old = falcon_here(environ, "lineage", "status", "sums", AT, "critical", "--version", "c1", "--reason", "x").stdout
    assert "  clean 2013-01-01T00:00Z on primary @b1  REPLACED: there is nothing left to protect\n" in old


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("sums", AT, "important", "--reason", "x"), 2, "is not one of 'initial', 'test', 'validated', 'critical'"),
        (("sums", AT, "critical"), 2, "Missing option '--reason'"),
        (("sums", AT, "critical", "--reason", " "), 1, "say why with --reason"),
        (("raw", "2013-01-01T07:00Z", "test", "--reason", "x"), 1, "no version of feed 'raw' 2013-01-01T07:00Z"),
    ],
)
def test_what_cannot_be_set(environ: dict[str, str], words: tuple[str, ...], code: int, text: str) -> None:
    found = falcon_here(environ, "lineage", "status", *words)
    assert (found.returncode, text in found.stderr) == (code, True), found.stderr


PRUNE = """\
1 version to be made again
needed for that:
  raw on primary: 1 version, 2013-01-01T00:00Z, 9 bytes
can go:
  clean on primary: 1 version, 2013-01-01T00:00Z, 0 bytes
1 version can go, which frees 0 bytes
"""


def test_what_can_go(environ: dict[str, str]) -> None:
    falcon_here(environ, "lineage", "status", "sums", AT, "initial", "--reason", "x")
    falcon_here(environ, "lineage", "status", "sums", AT, "initial", "--version", "c1", "--reason", "x")
    assert falcon_here(environ, "lineage", "prune-plan").stderr.startswith("Error: no version is critical: name ")
    assert falcon_here(environ, "lineage", "prune-plan", f"sums/{AT}").stdout == PRUNE
    data = json.loads(falcon_here(environ, "lineage", "prune-plan", f"sums/{AT}", "--json").stdout)
    assert [one["version"] for one in data["goes"]] == ["b2"]
    gone = falcon_here(environ, "lineage", "prune-plan", f"sums/{AT}@c1").stdout
    assert "  sums 2013-01-01T00:00Z on primary @c1 cannot be made again: keep it; falcon lineage show" in gone


def test_what_is_forgotten(environ: dict[str, str]) -> None:
    assert falcon_here(environ, "lineage", "expire").stderr.startswith("Error: FALCON_LINEAGE_RETENTION is not set")
    wrong = falcon_here({**environ, "FALCON_LINEAGE_RETENTION": "2 years"}, "lineage", "expire")
    assert wrong.stderr.startswith("Error: FALCON_LINEAGE_RETENTION: '2 years' is not a frequency")
    limited = {**environ, "FALCON_LINEAGE_RETENTION": "days(30)"}
    plan = falcon_here(limited, "lineage", "expire", "--dry-run").stdout
    assert plan.startswith("would forget 1 version whose data went before 20")
    assert plan.endswith("  raw on primary: 1\n")
    assert falcon_here(limited, "lineage", "expire", "--yes").stdout.startswith("forgot 1 version whose data went ")
    assert (
        "no version a1... of feed 'raw'" in falcon_here(environ, "lineage", "show", "raw", AT, "--version", "a1").stderr
    )


def test_a_version_that_was_made_from_many(environ: dict[str, str]) -> None:
    many = [version_row(1, "many", f"m{number}", id=number) for number in range(100, 152)]
    with open_installation() as installation:
        write_versions(
            installation, [*many, version_row(1, "raw", "whole", id=160)], {(160, one["id"]): "p" for one in many}
        )
    asked = ("lineage", "status", "raw", AT, "critical", "--version", "whole", "--reason", "x")
    lines = falcon_here(environ, *asked).stdout.splitlines()
    assert (lines[1], len(lines)) == ("52 versions that it was made from:", 53)
    assert lines[-1] == "  ... and 2 more; --json lists all"
    assert len(json.loads(falcon_here(environ, *asked, "--json").stdout)["protects"]) == 52


def test_a_page_for_browsers(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "graph.html"
    for asked in (("show", "sums", AT), ("impact", "raw", AT), ("path", f"raw/{AT}", f"sums/{AT}")):
        done = falcon_here(environ, "lineage", *asked, "--html", str(file))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert f"primary/sums/{AT}@c2" in file.read_text("ascii")
        file.unlink()
    plain = {**environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert falcon_here(plain, "lineage", "show", "sums", AT, "--html", "-").stdout.startswith("<!DOCTYPE html>")
    nowhere = falcon_here(environ, "lineage", "show", "sums", AT, "--html", str(tmp_path / "no" / "graph.html"))
    assert (nowhere.returncode, nowhere.stdout) == (1, "")
    assert "no/graph.html" in nowhere.stderr
    assert "Traceback" not in nowhere.stderr


def test_versions_are_searched_for(environ: dict[str, str]) -> None:
    found = falcon_here(environ, "lineage", "search", "--where", "process=add-up", "--limit", "1")
    assert (found.returncode, len(found.stdout.splitlines())) == (0, 2)
    assert found.stdout.startswith(f"sums {AT} on primary @c2  AVAILABLE  by add-up in run ")
    assert found.stdout.splitlines()[1].startswith("there are more: ")
    part = falcon_here(environ, "lineage", "search", "--where", "process=add-up", "--limit", "1", "--json")
    after = json.loads(part.stdout)["next"]
    rest = falcon_here(environ, "lineage", "search", "--where", "process=add-up", "--after", after, "--json")
    assert [one["version"] for one in json.loads(rest.stdout)["items"]] == ["c1"]
    assert falcon_here(environ, "lineage", "search", "--where", "feed=none").stdout == "no version is so\n"
    wrong = falcon_here(environ, "lineage", "search", "--where", "colour=red")
    assert (wrong.returncode, "there is no field 'colour'" in wrong.stderr) == (2, True)


def test_what_was_made_from_a_version_runs_again(environ: dict[str, str]) -> None:
    """But for a process that is deleted by now."""
    with open_installation() as installation:
        write(installation, process_row("cleanse", 0, "SUCCEEDED"))
    asked = ("lineage", "impact", "raw", AT, "--version", "a2", "--rerun", "--reason", "wrong prices")
    would = falcon_here(environ, *asked, "--dry-run")
    gone = "there is no process or feed 'add-up'"
    lines = [f"  cleanse {AT} on primary", f"  left out: {gone}", "1 instance would be asked to run again"]
    assert (would.returncode, would.stdout.splitlines()) == (0, lines)
    done = json.loads(falcon_here(environ, *asked, "--json").stdout)
    assert (done["changed"], done["left"], [one["reason"] for one in done["results"]]) == (1, [gone], ["wrong prices"])
    again = falcon_here(environ, *asked)
    assert again.stdout.splitlines()[-1] == "0 instances are asked to run again"


def test_lineage_for_other_systems(environ: dict[str, str]) -> None:
    plain = {**environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    told = falcon_here(plain, "lineage", "export", "--openlineage", "cleanse").stdout.splitlines()
    events = [json.loads(line) for line in told]
    assert {one["job"]["name"] for one in events} == {"primary.cleanse"}
    for one in events:
        assert_valid(one)
    with Path("/dev/full").open("w") as full:
        command = [Path(sys.executable).with_name("falcon"), "lineage", "export", "--openlineage"]
        done = subprocess.run(command, env=environ, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, "No space left on device" in done.stderr, "Traceback" in done.stderr) == (1, True, False)
    assert falcon_here(environ, "lineage", "export").returncode == 2


def test_a_page_is_written_into_regular_files_only(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    kinds = {tmp_path / "pipe": "a pipe", tmp_path / "link": "a symbolic link", Path("/dev/null"): "a device"}
    for path, kind in kinds.items():
        shown = falcon_here(environ, "lineage", "show", "sums", AT, "--html", str(path))
        said = f"Error: {path} cannot be written: it is {kind}, and only regular files are replaced\n"
        assert (shown.returncode, shown.stdout, shown.stderr) == (1, "", said)
    none = str(tmp_path / "none.html")
    refused = falcon_here(environ, "lineage", "show", "sums", "2013-01-09T00:00Z", "--html", none)
    assert refused.returncode != 0
    assert sorted(tmp_path.iterdir()) == before


def test_of_many_versions_there_is_a_summary_by_feed(environ: dict[str, str]) -> None:
    hours = [T + timedelta(hours=hour) for hour in range(300)]
    with open_installation() as installation:
        rows = [version_row(50, "seed", "s1", id=1000)]
        rows += [
            made_row(51, f"leaf-{at % 2}", f"l{at}", "grow", id=1001 + at, instance=hour, nominal=hour)
            for at, hour in enumerate(hours)
        ]
        write_versions(installation, rows, {(1001 + at, 1000): "grow" for at in range(300)})
    impact = falcon_here(environ, "lineage", "impact", "seed", AT, "--limit", "2").stdout
    by_feed = (
        "  leaf-0 on primary: 150 versions (150 AVAILABLE), 2013-01-01T00:00Z to 2013-01-13T10:00Z\n"
        "  leaf-1 on primary: 150 versions (150 AVAILABLE), 2013-01-01T01:00Z to 2013-01-13T11:00Z\n"
    )
    assert impact == (
        f"seed 2013-01-01T00:00Z on primary @s1: 300 versions were made from it\n{by_feed}"
        "  leaf-0 2013-01-01T00:00Z on primary @l0  AVAILABLE\n"
        "  leaf-1 2013-01-01T01:00Z on primary @l1  AVAILABLE\n"
        "  ... and 298 more: --limit shows more of them, --json all\n"
        "to be run again for what is there:\n"
        "  grow on primary: 300 instances, 2013-01-01T00:00Z to 2013-01-13T11:00Z\n"
        "  grow 2013-01-01T00:00Z on primary\n"
        "  grow 2013-01-01T01:00Z on primary\n"
        "  ... and 298 more: --limit shows more of them, --json all\n"
    )
    shown = falcon_here(environ, "lineage", "show", "seed", AT, "--direction", "down").stdout.split("made into:\n")[1]
    assert shown.startswith(by_feed)
    assert len(shown.splitlines()) == 2 + 100 + 1
    whole = falcon_here(environ, "lineage", "impact", "seed", AT, "--limit", "300").stdout.splitlines()
    assert len(whole) == 1 + 300 + 1 + 300
    assert len(json.loads(falcon_here(environ, "lineage", "impact", "seed", AT, "--json").stdout)["nodes"]) == 301


def test_what_a_run_did_that_nobody_declared(environ: dict[str, str]) -> None:
    seen = {"capture": "partly: reads an RDD", "warnings": json.dumps(["writes /aside, which is no output"])}
    with open_installation() as installation:
        made = made_row(20, "spilled", "d1", "spill", run_id="run", writes=json.dumps(["/aside"]), **seen)
        write_versions(installation, [version_row(21, "drops", "e1"), made], {(20, 21): "spill"})
    shown = falcon_here(environ, "lineage", "show", "spilled", AT).stdout
    assert "  capture: partly: reads an RDD\n" in shown
    assert (
        "  warning: writes /aside, which is no output\n  also wrote: /aside  of no feed  (undeclared)\ncame from:\n"
    ) in shown
    found = json.loads(falcon_here(environ, "lineage", "show", "spilled", AT, "--json").stdout)
    assert found["version"]["capture"] == "partly: reads an RDD"
    assert found["version"]["capture_warnings"] == ["writes /aside, which is no output"]
    assert found["version"]["undeclared_writes"] == ["/aside"]
    edge = {"from": f"primary/drops/{AT}@e1", "to": "place:/aside", "process": "spill", "run": "run"}
    for asked in (("show", "spilled", AT), ("impact", "drops", AT), ("path", f"drops/{AT}", f"spilled/{AT}")):
        found = json.loads(falcon_here(environ, "lineage", *asked, "--json").stdout)
        assert {"id": "place:/aside", "kind": "place", "name": "/aside"} in found["nodes"]
        assert {**edge, "definition": 1, "declared": False} in found["edges"]
    impact = falcon_here(environ, "lineage", "impact", "drops", AT).stdout
    assert impact.endswith(
        "their runs also wrote what is of no feed:\n"
        "  /aside  by spilled 2013-01-01T00:00Z on primary @d1  (undeclared)\n"
    )
    drawn = falcon_here(environ, "lineage", "impact", "drops", AT, "--dot").stdout
    assert '  "place:/aside" [shape=folder];' in drawn
    assert f'"primary/drops/{AT}@e1" -> "place:/aside" [label="spill", style=dotted];' in drawn
    told = [json.loads(line) for line in falcon_here(environ, "lineage", "export", "--openlineage").stdout.splitlines()]
    written = [[one["name"] for one in event["outputs"]] for event in told if event["job"]["name"] == "primary.spill"]
    assert written == [[], ["spilled", "/aside"]]


def test_what_was_made_from_a_place_where_a_run_wrote(environ: dict[str, str]) -> None:
    def side(**places: str) -> dict[str, str]:
        return {name: json.dumps([place]) for name, place in places.items()}

    with open_installation() as installation:
        rows = [
            version_row(30, "ore", "f1"),
            made_row(31, "iron", "g1", "smelt", made_at=T + timedelta(hours=1), **side(writes="/slag")),
            made_row(32, "bricks", "h1", "press", made_at=T + timedelta(hours=2), **side(places="/slag/day=1")),
            made_row(33, "walls", "i1", "build"),
            made_row(34, "dust", "j1", "press", made_at=T, **side(places="/slag")),
        ]
        write_versions(installation, rows, {(31, 30): "smelt", (33, 32): "build"})
    for source in ("ore", "iron"):
        impact = falcon_here(environ, "lineage", "impact", source, AT).stdout
        assert "  bricks 2013-01-01T00:00Z on primary @h1  AVAILABLE\n" in impact
        assert "  walls 2013-01-01T00:00Z on primary @i1  AVAILABLE\n" in impact
        assert "  press 2013-01-01T00:00Z on primary\n  build 2013-01-01T00:00Z on primary\n" in impact
        assert "dust" not in impact
        found = json.loads(falcon_here(environ, "lineage", "impact", source, AT, "--json").stdout)
        ends = {(one["from"].partition("/")[2][:4], one["to"].split("/")[-2]) for one in found["edges"]}
        assert {("slag", "bricks"), ("bric", "walls")} <= ends
        tree = falcon_here(environ, "lineage", "show", source, AT, "--direction", "down").stdout.split("into:\n")[1]
        assert (
            "  bricks 2013-01-01T00:00Z on primary @h1  AVAILABLE  by press in run 00000032, definition 1"
            "  (undeclared)\n"
            "    walls 2013-01-01T00:00Z on primary @i1"
        ) in tree
    column = falcon_here(environ, "lineage", "impact", "ore", AT, "--column", "weight").stdout
    assert "bricks 2013-01-01T00:00Z on primary @h1  AVAILABLE: perhaps more: not all columns are recorded" in column
    between = falcon_here(environ, "lineage", "path", f"ore/{AT}", f"walls/{AT}").stdout
    assert [line.split()[0] for line in between.splitlines()][:4] == ["ore", "iron", "bricks", "walls"]
