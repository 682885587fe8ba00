from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from tests.catalog.definition_files import FILES, changed, write
from tests.processes import environ_with

_HERE = Path(__file__).parent
LATE_START = "sla: {should_start_in: days(1), should_end_in: days(2)}"


def falcon(*arguments: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command as a whole process, in ``folder``."""
    command = [sys.executable, "-c", "from falcon_assets.surface.cli.main import main; main()", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environ_with(**environ), capture_output=True, text=True, check=False, timeout=60
    )


def test_right_definitions(tmp_path: Path) -> None:
    write(tmp_path / "defs", FILES)
    result = falcon("validate", "defs", folder=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "2 clusters, 2 feeds, 1 process: no problems\n", "")


def test_json_has_numbers_problems_and_warnings(tmp_path: Path) -> None:
    write(tmp_path / "defs", FILES)
    found = json.loads(falcon("validate", "defs", "--json", folder=tmp_path).stdout)
    numbers = {"cluster": 2, "datasource": 0, "flow": 0, "feed": 2, "process": 1}
    assert found == {"valid": True, "entities": numbers, "problems": []}
    write(tmp_path / "bad", {"one.yaml": "kind: cluster\n"})
    result = falcon("validate", "bad", "--json", folder=tmp_path)
    found = json.loads(result.stdout)
    assert (result.returncode, found["valid"], found["entities"]) == (1, False, {})
    assert found["problems"][0]["position"] == {"file": "bad/one.yaml", "line": 1, "column": 1}


def test_the_folder_of_the_settings_is_the_default(tmp_path: Path) -> None:
    write(tmp_path / "entity_defs", FILES)
    write(tmp_path / "others", {"one.yaml": FILES["clusters.yaml"].partition("---")[0]})
    assert falcon("validate", folder=tmp_path).stdout == "2 clusters, 2 feeds, 1 process: no problems\n"
    named = falcon("validate", folder=tmp_path, FALCON_ENTITY_DEFS="others")
    assert named.stdout == "1 cluster, 0 feeds, 0 processes: no problems\n"


def test_a_file_is_checked_with_all_that_it_belongs_to(tmp_path: Path) -> None:
    write(tmp_path / "entity_defs", FILES)
    write(tmp_path / "others", {"one.yaml": FILES["clusters.yaml"].partition("---")[0]})
    whole = "2 clusters, 2 feeds, 1 process: no problems\n"
    assert falcon("validate", "entity_defs/processes.yaml", folder=tmp_path).stdout == whole
    assert (
        falcon("validate", "others/one.yaml", folder=tmp_path).stdout
        == "1 cluster, 0 feeds, 0 processes: no problems\n"
    )
    (tmp_path / "work.sql").touch()
    other = falcon("validate", "work.sql", folder=tmp_path)
    assert (other.returncode, other.stderr) == (
        1,
        "Error: work.sql is not a folder: set the folder with the entity definitions\n",
    )


def test_a_problem_with_its_line(tmp_path: Path) -> None:
    write(tmp_path / "defs", changed("processes.yaml", "feed: raw", "feed: rwa"))
    result = falcon("validate", "defs", folder=tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout == (
        "defs/processes.yaml:8: inputs[0].feed: unknown feed 'rwa' (did you mean 'raw'?)\n"
        '      - {name: flights, feed: rwa, start: "now(0,0)", end: "now(0,0)"}\n'
        "                              ^\n"
        "1 problem in the entity definitions\n"
    )


def test_a_warning_is_no_problem(tmp_path: Path) -> None:
    write(tmp_path / "defs", changed("processes.yaml", "workflow:", f"{LATE_START}\nworkflow:"))
    warning = "sla.should_start_in: days(1) is longer than the timeout, 6 x hours(1): an instance times out before\n"
    line = f"    {LATE_START}\n                           ^\n"
    result = falcon("validate", "defs", folder=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        f"defs/processes.yaml:11: warning: {warning}{line}2 clusters, 2 feeds, 1 process: no problems, 1 warning\n"
    )
    strict = falcon("validate", "--strict", "defs", folder=tmp_path)
    assert (strict.returncode, strict.stderr) == (1, "")
    assert strict.stdout == f"defs/processes.yaml:11: {warning}{line}1 problem in the entity definitions\n"


def test_many_mistakes(tmp_path: Path) -> None:
    shutil.copytree(_HERE / "many_mistakes", tmp_path / "many_mistakes")
    result = falcon("validate", "many_mistakes", folder=tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout == (_HERE / "many_mistakes.txt").read_text()


def test_loading_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_HERE)
    with pytest.raises(InvalidDefinitionsError) as caught:
        load_entities(Path("many_mistakes"))
    assert f"{caught.value}\n" == (_HERE / "many_mistakes.txt").read_text()


def test_missing_folder(tmp_path: Path) -> None:
    result = falcon("validate", "nowhere", folder=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Error: there is no folder nowhere: it should hold the entity definitions\n"


def test_bad_settings(tmp_path: Path) -> None:
    result = falcon("validate", folder=tmp_path, FALCON_CLOCK="noon")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: FALCON_CLOCK: ")
    assert "Traceback" not in result.stderr


def test_version_and_help(tmp_path: Path) -> None:
    assert falcon("--version", folder=tmp_path).stdout == f"falcon, version {version('falcon-assets')}\n"
    text = falcon("--help", folder=tmp_path).stdout
    assert re.search(r"^  validate +Check all entity definitions\.$", text, re.MULTILINE)


def test_unknown_command(tmp_path: Path) -> None:
    result = falcon("valdate", folder=tmp_path)
    assert result.returncode == 2
    assert "No such command 'valdate'" in result.stderr


@pytest.mark.parametrize(
    "arguments", [["--help"], ["validate", "defs"], ["schema"]], ids=["help", "validate", "schema"]
)
def test_nothing_slow_is_imported(tmp_path: Path, arguments: list[str]) -> None:
    write(tmp_path / "defs", FILES)
    script = (
        "import sys\n"
        "from falcon_assets.surface.cli.main import falcon\n"
        f"falcon({arguments!r}, standalone_mode=False)\n"
        "slow = {'dagster', 'pyspark', 'pandas', 'sqlalchemy', 'fsspec'} & set(sys.modules)\n"
        "sys.exit(f'imported: {slow}' if slow else 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
