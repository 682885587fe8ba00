"""Instances that landed from outside are recorded now, however old they are."""

from __future__ import annotations

from datetime import datetime

import pytest

from falcon_assets.errors import FalconError
from falcon_assets.features.landing.operations import CollectedInstances, collect_instances
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.audit import read_audit
from falcon_assets.operations.installation import Installation
from falcon_assets.settings import Settings
from tests.operations.entities import COLLECTED as ENTITIES
from tests.operations.opening import installation_of

installation = installation_of(
    {"all.yaml": ENTITIES, "a.sql": "SELECT * FROM rows"}, "2013-01-01T05:30Z", emptied=False
)


def land(settings: Settings, hour: int, text: str = "a,1\n", *, complete: bool = True) -> str:
    folder = settings.home / f"data/primary/raw/2012-03-01/{hour:02}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part.csv").write_text(text)
    if complete:
        (folder / "_SUCCESS").touch()
    return str(folder)


def at(hour: int) -> datetime:
    return parse_instant(f"2012-03-01T{hour:02}:00Z")


def hours(found: CollectedInstances) -> dict[str, list[int]]:
    """The hours that were found, by what was found."""
    recorded = {name: [one.instance.hour for one in getattr(found, name)] for name in ("new", "changed")}
    missing = [instance.hour for instance, _ in found.missing]
    return {**recorded, "unchanged": [one.hour for one in found.unchanged], "missing": missing}


def test_what_is_new_or_changed_is_recorded_once(installation: Installation, settings: Settings) -> None:
    folders = [land(settings, hour, complete=hour < 2) for hour in range(3)]
    (first,) = collect_instances(installation, "raw", at(0), at(3))
    assert hours(first) == {"new": [0, 1], "changed": [], "unchanged": [], "missing": [2, 3]}
    reasons = [why for _, why in first.missing]
    assert reasons == [f"there is no _SUCCESS in {folders[2]}", f"there is nothing at {folders[2][:-1]}3"]
    (again,) = collect_instances(installation, "raw", at(0), at(1), "primary")
    assert hours(again) == {"new": [], "changed": [], "unchanged": [0, 1], "missing": []}
    land(settings, 0, "a,1\nb,2\n")
    (changed,) = collect_instances(installation, "raw", at(0), at(1))
    assert hours(changed) == {"new": [], "changed": [0], "unchanged": [1], "missing": []}
    assert changed.changed[0].version.bytes == 8
    with installation.database.connect() as connection:
        entries, _ = read_audit(connection, (), None, 0, 10)
    told = [(one.operation, list(one.entities), one.instances, one.first, one.result) for one in entries]
    assert sorted(told, key=str) == sorted(
        [
            ("instance collect", [("feed", "raw")], 2, at(0), "done"),
            ("instance collect", [("feed", "raw")], 0, None, "unchanged"),
            ("instance collect", [("feed", "raw")], 1, at(0), "done"),
        ],
        key=str,
    )


def test_where_there_is_an_instance_in_the_range_is_checked(installation: Installation) -> None:
    june = parse_instant("2012-06-01T00:00Z")
    assert [one.cluster for one in collect_instances(installation, "raw", june, june)] == ["primary", "short"]
    may = parse_instant("2012-05-01T00:00Z")
    assert [one.cluster for one in collect_instances(installation, "raw", may, may)] == ["primary"]


def test_a_store_that_cannot_be_reached_is_said(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    (found,) = collect_instances(installation, "remote", at(0), at(1))
    assert (found.problem or "").startswith("cluster 'away': cannot ")
    assert "secret" not in str(found)


WRONG = {
    "unknown feed": (("nobody",), "there is no feed 'nobody'; there is: raw, made, remote"),
    "produced": (
        ("made",),
        "process 'make' writes it on cluster 'primary': materialize the partition to have it written anew",
    ),
    "another cluster": (("raw", "away"), "feed 'raw' is not on cluster 'away'; it is on: primary, short"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_questions_are_answered_in_a_sentence(
    installation: Installation, arguments: tuple[str, ...], message: str
) -> None:
    feed, *cluster = arguments
    with pytest.raises(FalconError) as caught:
        collect_instances(installation, feed, at(0), at(1), *cluster)
    assert str(caught.value) == message


def test_what_is_to_come_is_no_instance_yet(installation: Installation) -> None:
    first, last = parse_instant("2013-02-01T00:00Z"), parse_instant("2013-03-01T00:00Z")
    with pytest.raises(FalconError) as caught:
        collect_instances(installation, "raw", first, last, "primary")
    assert str(caught.value) == (
        "feed 'raw' on cluster 'primary' has no instance from 2013-02-01T00:00Z to 2013-03-01T00:00Z at "
        "2013-01-01T05:30Z: its validity is 2012-01-01T00:00Z to 2014-01-01T00:00Z, its frequency hours(1)"
    )
