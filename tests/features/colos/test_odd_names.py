"""Colos, users and texts as people call them, seen by a command of another language and time zone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.settings import Settings
from falcon_assets.surface.rest.endpoints import adapter_of
from tests.builders import cluster_yaml, feed_yaml, on
from tests.features.colos.worlds import World, open_world, said
from tests.processes import FALCON, environ_with

pytestmark = pytest.mark.soak
EAST, WEST = "Öst & <b>'Süd'</b> 50%", 'west "côte"'
TEXT = 'it\'s "öd": {a: [1, #2]} 50% \u202e\U0001f680 </td>'
SPAN = {"start": "2013-03-30T00:00Z", "end": "2013-04-02T00:00Z"}


@pytest.fixture(scope="module")
def odd(settings: Settings, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    adapter_of(ListEntities)
    with open_world([EAST, WEST], settings, template, tmp_path_factory.mktemp("odd")) as found:
        yield found


def falcon(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """A command on another machine."""
    environ = environ_with(FALCON_TOKEN="ann", TZ="Asia/Kathmandu", LC_ALL="C")
    command = [FALCON, "--server", world.client.url, *words]
    return subprocess.run(command, env=environ, check=False, capture_output=True, text=True, timeout=120)


def test_names_and_texts_come_as_they_are_meant(odd: World, tmp_path: Path) -> None:
    east, west = odd.colos[EAST], odd.colos[WEST]
    lakes = cluster_yaml("a_lake", colo=EAST, description=TEXT) + cluster_yaml("B-lake", colo=WEST)
    feed = feed_yaml(
        "Raw_1-x",
        *(on(name, type=kind, validity=SPAN) for name, kind in (("a_lake", "source"), ("B-lake", "target"))),
        frequency="days(1)",
        timezone="Europe/Berlin",
        description=TEXT,
        tags={"note": TEXT},
    )
    west.stop()
    partial = odd.post("submit", lakes + feed, reason=TEXT)
    assert (partial.status_code, said(partial)) == (207, {EAST: "done", WEST: "away"}), partial.text
    listed = falcon(odd, "entity", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    assert f"which do not answer: {WEST}" in listed.stderr
    west.start()
    odd.prism.making_up.heal()
    assert west.entities() == east.entities()
    assert west.entities()["feed Raw_1-x"]["description"] == TEXT
    chosen = falcon(odd, "--colo", WEST, "instance", "list", "Raw_1-x", "--type", "feed", "--json")
    assert chosen.returncode == 0, chosen.stderr
    items = json.loads(chosen.stdout)["items"]
    assert {one["cluster"] for one in items} == {"B-lake"}
    both = falcon(odd, "instance", "list", "Raw_1-x", "--type", "feed", "--json", "--sort", "instance")
    found = [(one["instance"], one["cluster"]) for one in json.loads(both.stdout)["items"]]
    times = [f"2013-03-{day}T{hour}:00Z" for day, hour in ((30, "00"), (31, "00"), (31, "23"))] + ["2013-04-01T23:00Z"]
    assert found == [(time, name) for time in times for name in ("B-lake", "a_lake")]
    file = tmp_path / "feed ü.yaml"
    file.write_text(feed.replace("days(1)", "hours(1)"), encoding="utf-8")
    applied = falcon(odd, "entity", "apply", str(file), "--reason", TEXT)
    assert applied.returncode == 0, applied.stderr + applied.stdout
    assert west.entities() == east.entities()
    shown = falcon(odd, "admin", "colos")
    assert (EAST in shown.stdout, WEST in shown.stdout) == (True, True), shown.stdout
