"""What retention would do, which changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from falcon_assets.errors import FalconError
from falcon_assets.features.retention.operations import PlanRetention
from falcon_assets.features.retention.plan import FeedPlan
from falcon_assets.history.tables import METADATA
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.settings import Settings
from tests.operations.entities import RETAINED as ENTITIES
from tests.operations.opening import OpenAt


@pytest.fixture(scope="module")
def home(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Path:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    for cluster, feed in (("primary", "raw"), ("primary", "kept"), ("backup", "raw")):
        for hour in range(8):
            folder = settings.home / "data" / cluster / feed / "2013-01-01" / f"{hour:02}"
            folder.mkdir(parents=True)
            (folder / "part").write_text("x")
    (settings.home / "data" / "backup" / "linked").symlink_to(settings.home)
    return settings.home


@pytest.fixture
def installation(open_at: OpenAt, home: Path) -> Iterator[Installation]:
    with open_at("2013-01-01T06:00Z") as opened:
        yield opened


def fates(plan: FeedPlan) -> dict[int, tuple[str, str]]:
    return {one.instance.nominal.hour: (one.action, one.reason) for one in plan.verdicts}


def places(plans: list[FeedPlan]) -> list[tuple[str, str]]:
    return [(one.feed.name, one.cluster.name) for one in plans]


def test_what_goes_what_stays_and_why(installation: Installation) -> None:
    (plan,) = PlanRetention(feed="raw", cluster="primary").run(installation)
    assert plan.status.status.value == "RUNNING"
    needed = "process reader 2013-01-01T0{}:00Z needs it: it has yet to run"
    assert fates(plan) == {
        0: ("delete", "older than hours(3)"),
        1: ("keep", needed.format(1)),
        2: ("keep", needed.format(2)),
        **dict.fromkeys((3, 4, 5, 6), ("keep", "not older than hours(3)")),
        7: ("keep", "dated after now (future: keep)"),
    }


def test_as_if_it_were_another_time(installation: Installation) -> None:
    (plan,) = PlanRetention(feed="raw", cluster="backup", as_of=parse_instant("2013-01-01T03:00Z")).run(installation)
    assert [action for action, _ in fates(plan).values()] == ["archive", *["keep"] * 7]


def test_feeds_that_declare_no_retention_are_planned_when_asked_for(installation: Installation) -> None:
    assert places(PlanRetention(cluster="primary").run(installation)) == [("raw", "primary")]
    (plan,) = PlanRetention(feed="kept").run(installation)
    assert set(fates(plan).values()) == {("keep", "no retention is declared")}
    assert PlanRetention(cluster="empty").run(installation) == []


def test_a_feed_with_a_problem_delays_no_other(installation: Installation) -> None:
    plans = PlanRetention().run(installation)
    assert places(plans) == [("raw", "primary"), ("raw", "backup"), ("linked", "backup")]
    assert [one.problem[:41] for one in plans] == ["", "", "cluster 'backup': '/linked' leaves the ro"]


def test_nothing_is_changed_anywhere(installation: Installation, home: Path) -> None:
    def everything() -> tuple[set[str], list[Any]]:
        tables = [table for table in METADATA.sorted_tables if table.name != "fold"]
        with installation.database.connect() as connection:
            rows = [connection.execute(select(table)).all() for table in tables]
        return {str(Path(parent, name)) for parent, _, names in os.walk(home / "data") for name in names}, rows

    before = everything()
    PlanRetention().run(installation)
    PlanRetention(as_of=parse_instant("2013-12-31T00:00Z")).run(installation)
    assert everything() == before


WRONG = {
    "no feed": (("raws",), "there is no feed 'raws' (did you mean 'raw'?)"),
    "no cluster": ((None, "primry"), "there is no cluster 'primry' (did you mean 'primary'?)"),
    "not there": (("kept", "backup"), "feed 'kept' is not on cluster 'backup'"),
    "nothing like it": (("raw", "attic"), "there is no cluster 'attic'; there is: primary, backup, empty"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_questions_are_answered_in_a_sentence(
    installation: Installation, arguments: tuple[str | None, ...], message: str
) -> None:
    with pytest.raises(FalconError) as caught:
        PlanRetention(**dict(zip(("feed", "cluster"), arguments, strict=False))).run(installation)
    assert str(caught.value) == message
