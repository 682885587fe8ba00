"""The product without some of its features: their folders are not there at all, and the core does what it did."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest

from falcon_assets.settings import Settings
from falcon_assets.surface.registry import registry
from tests.builders import cluster_yaml
from tests.receivers import lineage_collector, subscriber, web_hook

ROOT = Path(__file__).parent.parent
SETS = {
    "sla": ("sla",),
    "notification": ("notification",),
    "messaging": ("messaging",),
    "quality": ("quality",),
    "secrets": ("secrets", "templates"),
    "lineage": ("lineage", "openlineage", "replay"),  # the others are about it
}
CORE = ["tests/planning", "tests/ledger", "tests/orchestration/coordination"]
BUILD = """
import sys
from pathlib import Path
import falcon_assets
from falcon_assets.catalog.store import load_entities
from falcon_assets.settings import load_settings
from falcon_assets.surface.dagster.code_location import definitions_of

assert Path(falcon_assets.__file__).is_relative_to(Path.cwd()), falcon_assets.__file__
settings = load_settings({})
found = definitions_of(load_entities(settings.entity_defs), settings)
graph = found.resolve_asset_graph()
print(len(graph.get_all_asset_keys()), *sorted(one.name for one in found.sensors))
"""
DELIVER = """
import sys
import dagster as dg
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import load_settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.features.messaging.world import World, run_facts

with open_installation(load_settings()) as installation:
    world = World(installation.settings, installation.instance, primary={"endpoint": sys.argv[1]})
    world.happens(*run_facts(1, state=InstanceState.FAILED))
    (sensor,) = (one for one in definitions_of(world.store, world.settings).sensors if "notification" in one.name)
    print(sensor.evaluate_tick(dg.build_sensor_context(instance=world.instance)).skip_message)
"""
PUBLISHED = ["started", "landed", "failed"]
NOTIFIED = ["falcon: FAILED process add-up on primary 2013-01-01T01:00Z"]
SENT = ["START", "FAIL"]
DELIVERED = {
    SETS["notification"]: (PUBLISHED, [], SENT),
    SETS["messaging"]: ([], NOTIFIED, SENT),
    SETS["lineage"]: (PUBLISHED, NOTIFIED, []),
}
"""What brokers, receivers of notifications and a system of lineage are told without these."""
HELP = "from falcon_assets.surface.cli.main import main; main()"


def without(folder: Path, features: tuple[str, ...]) -> Path:
    """A copy of the project in which these features are not."""
    for name in ("falcon_assets", "tests", "examples", "entity_defs"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)  # with what is compiled
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for feature in features:
        shutil.rmtree(folder / "falcon_assets" / "features" / feature)
    return folder


def run(folder: Path, home: Path, *command: str, **told: str) -> subprocess.CompletedProcess[str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith("FALCON_")}
    own = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "FALCON_HOME": str(home)}
    return subprocess.run(
        [sys.executable, *command],
        check=False,
        cwd=folder,
        env={**others, **own, **told},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module", params=SETS.values(), ids=list(SETS))
def features(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


@pytest.fixture(scope="module")
def folder(features: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return without(tmp_path_factory.mktemp("project"), features)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command of the product with all features, once."""
    return cache(partial(run, ROOT, tmp_path_factory.mktemp("home")))


def test_a_code_location_is_built_without(
    features: tuple[str, ...], folder: Path, whole: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    less = run(folder, tmp_path / "home", "-c", BUILD)
    assert less.returncode == 0, less.stderr
    number, *sensors = less.stdout.split()
    all_of_them = whole("-c", BUILD).stdout.split()
    assert number == all_of_them[0]
    gone = {one for one in all_of_them[1:] if one.endswith(features)}
    assert sensors == [one for one in all_of_them[1:] if one not in gone]


def test_its_commands_are_gone_and_the_others_say_what_they_are_for(
    features: tuple[str, ...], folder: Path, whole: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    modules = {command: one.module.split(".") for command, one in registry().items()}
    gone = {command for command, names in modules.items() if "features" in names and {*features} & {*names}}
    gone |= {command.partition(" ")[0] for command in gone} - {
        command.partition(" ")[0] for command in modules.keys() - gone
    }
    assert gone
    for group in ("", "instance"):
        command = ("-c", HELP, *group.split(), "--help")
        less = run(folder, tmp_path / "home", *command)
        assert less.returncode == 0, less.stderr
        found = (set(re.findall(r"^  ([a-z-]+)  ", one.stdout, re.MULTILINE)) for one in (whole(*command), less))
        before, after = found
        assert before - after == {one.removeprefix(f"{group} ") for one in gone if one.rpartition(" ")[0] == group}


@pytest.mark.parametrize("features", DELIVERED, ids=" ".join, indirect=True)
def test_events_are_delivered_without(features: tuple[str, ...], folder: Path, settings: Settings) -> None:
    with subscriber() as service, web_hook() as hook, lineage_collector() as collector:
        told = {
            "FALCON_DATABASE_URL": os.environ["FALCON_DATABASE_URL"],
            "FALCON_ENTITY_DEFS": str(settings.entity_defs),
            "FALCON_NOTIFICATION_TO": "HOOK",
            "HOOK": f"json://127.0.0.1:{hook.port}/",
            "FALCON_OPENLINEAGE_URL": f"http://127.0.0.1:{collector.port}",
        }
        ended = run(folder, settings.home, "-c", DELIVER, service.url, **told)
    assert ended.returncode == 0, ended.stderr
    published = [one["type"].rpartition(".")[2] for one in service.events]
    sent = [one["eventType"] for one in collector.events]
    assert (published, hook.titles, sent) == DELIVERED[features]


@pytest.mark.parametrize("features", [SETS["messaging"]], ids=" ".join, indirect=True)
def test_the_doctor_says_that_nothing_is_published(folder: Path, tmp_path: Path) -> None:
    entities = tmp_path / "entities"
    entities.mkdir()
    broker = {"messaging": {"endpoint": "http://127.0.0.1:9/"}}
    interfaces = {"write": {"endpoint": "data"}, "execute": {"endpoint": "local[2]"}, **broker}
    (entities / "all.yaml").write_text("".join(cluster_yaml(one, interfaces=interfaces) for one in ("here", "there")))
    doctor = ("-c", HELP, "doctor", "--only", "messaging", "--json")
    ended = run(folder, tmp_path / "home", *doctor, FALCON_ENTITY_DEFS=str(entities))
    (found,) = json.loads(ended.stdout)["items"]
    assert (ended.returncode, found["status"]) == (0, "warning"), ended.stderr
    assert found["text"] == (
        "2 clusters name a broker (here, there), and this installation has no folder features/messaging: no event is "
        "published"
    )


@pytest.mark.soak
def test_tests_of_the_core_pass_without(tmp_path: Path) -> None:
    features = tuple(one for several in SETS.values() for one in several)
    folder = without(tmp_path, features)
    for path in (folder / "tests").rglob("test_*.py"):
        if any(f"falcon_assets.features.{one}" in path.read_text() for one in features):
            path.unlink()  # these are about what is not there
    own = (f"--basetemp={tmp_path / 'made'}", "-p", "no:cacheprovider")  # the folder of others stays as it is
    result = run(folder, tmp_path / "home", "-m", "pytest", "-q", "-n", "0", *own, *CORE)
    assert result.returncode == 0, result.stdout[-3000:]
