"""Outputs of one instance, one of which fails its checks: none is published, until each such one is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from falcon_assets.errors import UsageError
from falcon_assets.features.quality.operations import AcceptInstance, InstanceQuality
from falcon_assets.features.versions.operations import instance_versions
from falcon_assets.operations.installation import Installation
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.renaming.publication import RenamePublication
from tests.builders import cluster_yaml, process_yaml
from tests.features.landing.snapshot_tables import run, said
from tests.features.quality.shop import anew, at
from tests.features.quality.test_holding import HOUR, ONE, RERUN, land, rows
from tests.operations.opening import OpenAt

pytestmark = pytest.mark.usefixtures("spark")
FEED = f"""
---
kind: feed
name: NAME
frequency: hours(1)
schema: "n int"
locations: {{data: "/NAME/${{YEAR}}${{MONTH}}${{DAY}}-${{HOUR}}"}}
{ONE}
"""
ABOVE = "on_error: hold\nversions: {keep: 3}\nchecks: [{name: above, rule: in_range, column: n, min: 0}]"
BELOW = "on_error: hold\nprofile: true\nchecks: [{name: below, rule: in_range, column: n, max: 99}]"
NAMES = ("above", "below", "plain")
PROGRAM = """
def run(spark, inputs, instance):
    return dict.fromkeys(("above", "below", "plain"), inputs["rows"])
"""


def declared() -> str:
    own = {"rows": "format: json", "above": ABOVE, "below": BELOW, "plain": "availability_flag: _SUCCESS"}
    feeds = "".join(FEED.replace("NAME", name) + more + "\n" for name, more in own.items())
    outputs = [{"name": name, "feed": name, "instance": "now(0,0)"} for name in NAMES]
    how: dict[str, Any] = {"outputs": outputs, "workflow": {"engine": "pyspark", "path": "a.py"}, "schedule": True}
    return cluster_yaml() + feeds + process_yaml("keep", "rows", None, HOUR, **how)


@pytest.fixture
def keeping(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    write_entities({"all.yaml": declared(), "a.py": PROGRAM})
    with open_at("2013-01-01T03:00Z") as installation:
        yield anew(installation)


def published(installation: Installation) -> list[list[int] | None]:
    folders = [installation.settings.home / f"data/primary/{name}/20130101-01" for name in NAMES]
    return [sorted(pq.read_table(one)["n"].to_pylist()) if one.exists() else None for one in folders]


def accept(installation: Installation, feed: str) -> InstanceQuality:
    return AcceptInstance(feed=feed, instance=at(1), reason="why").run(installation)


HELD = "SELECT feed, accepted_by IS NOT NULL FROM falcon.quality_held ORDER BY feed"


def test_all_are_published_when_each_that_is_wrong_is_accepted(keeping: Installation) -> None:
    land(keeping, 1)
    assert run(keeping).succeeded == 1
    (first,) = instance_versions(keeping, "above", at(1)).versions
    assert published(keeping) == [[1]] * 3
    land(keeping, 5, -1, 200)
    said(*RERUN)
    (trouble,) = run(keeping).trouble
    assert [line.partition(" It lies at ")[0] for line in trouble.reason.splitlines()[:5]] == [
        "above 2013-01-01T01:00Z is held, not published: above: 1 of 3 rows: n is below 0.",
        "To publish it as it is: falcon quality accept above 2013-01-01T01:00Z --cluster primary --reason REASON",
        "below 2013-01-01T01:00Z is held, not published: below: 1 of 3 rows: n is above 99.",
        "To publish it as it is: falcon quality accept below 2013-01-01T01:00Z --cluster primary --reason REASON",
        "plain 2013-01-01T01:00Z is held, not published, as it is published with that.",
    ]
    assert published(keeping) == [[1]] * 3
    assert rows(keeping, HELD) == [("above", False), ("below", False), ("plain", False)]
    assert "it passed, another output of the instance did not" in said("quality", "show", "plain", "2013-01-01T01:00Z")
    with pytest.raises(UsageError) as error:
        accept(keeping, "plain")
    assert str(error.value) == (
        "plain 2013-01-01T01:00Z passed its checks; what is held with it did not: falcon quality accept above "
        "2013-01-01T01:00Z --cluster primary --reason REASON; falcon quality accept below 2013-01-01T01:00Z --cluster "
        "primary --reason REASON"
    )
    assert accept(keeping, "above").held is not None
    assert published(keeping) == [[1]] * 3
    assert rows(keeping, HELD) == [("above", True), ("below", False), ("plain", False)]
    found = accept(keeping, "below")
    assert (found.held, found.verdict.value) == (None, "VALID")
    assert published(keeping) == [[-1, 5, 200]] * 3
    assert rows(keeping, HELD) == []
    kept = {one.version: one.state for one in instance_versions(keeping, "above", at(1)).versions}
    assert (kept.pop(first.version), [*kept.values()]) == ("KEPT", ["AVAILABLE"])
    assert (keeping.settings.home / "data/primary/plain/20130101-01/_SUCCESS").exists()
    verdicts = "SELECT feed, verdict, accepted_by IS NOT NULL, profile IS NOT NULL FROM falcon.quality_verdicts"
    assert rows(keeping, f"{verdicts} ORDER BY event_id DESC LIMIT 2") == [
        ("below", "INVALID", True, True),
        ("above", "INVALID", True, False),
    ]
    assert rows(keeping, "SELECT state, attempt FROM falcon.process_instances") == [("SUCCEEDED", 2)]
    assert list((keeping.settings.home / "data/primary/.falcon/staging/held").iterdir()) == []


def test_a_kill_between_two_publications_is_made_good(keeping: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for again: what is published already is found there."""
    land(keeping, 5, -1)
    run(keeping)
    commit, committed = RenamePublication.commit, list[str]()

    def killed(self: RenamePublication, name: str) -> DataVersion:
        if committed:
            raise KeyboardInterrupt
        committed.append(name)
        return commit(self, name)

    monkeypatch.setattr(RenamePublication, "commit", killed)
    with pytest.raises(KeyboardInterrupt):
        accept(keeping, "above")
    assert published(keeping) == [[-1, 5], None, None]
    assert rows(keeping, HELD) == [("above", True), ("below", False), ("plain", False)]
    monkeypatch.setattr(RenamePublication, "commit", commit)
    assert accept(keeping, "above").verdict.value == "VALID"
    assert published(keeping) == [[-1, 5]] * 3
    assert rows(keeping, HELD) == []
    states = "SELECT feed, state FROM falcon.feed_instances WHERE feed <> 'rows' ORDER BY feed"
    assert rows(keeping, states) == [(name, "AVAILABLE") for name in NAMES]
