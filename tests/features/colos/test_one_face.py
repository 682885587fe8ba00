"""One face of colos: changes go where they belong, what is missed is made up for, nothing waits for who is away."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import select

from falcon_assets.history.platform.open_ledger import tables_engine
from falcon_assets.history.tables import COLO_WANTED
from falcon_assets.model.access import Role
from tests.builders import cluster_yaml, feed_yaml, on
from tests.features.colos.worlds import TIMEOUT, World, lakes, said, world
from tests.waiting import wait_until

__all__ = ["world"]
LAKES = lakes("east", "west")
BOTH = (on("east-lake", type="source"), on("west-lake", type="target"))


@pytest.fixture
def submitted(world: World) -> Iterator[World]:
    """Both clusters, and the feed ``raw`` on both."""
    world.clean()
    answer = world.post("submit", LAKES + feed_yaml("raw", *BOTH))
    assert (answer.status_code, said(answer)) == (200, {"east": "done", "west": "done"}), answer.text
    yield world


def test_entities_go_to_the_colos_of_their_clusters(submitted: World) -> None:
    answer = submitted.post("apply", feed_yaml("own", on("west-lake")), reason="why")
    assert said(answer) == {"west": "done"}
    east, west = submitted.colos["east"], submitted.colos["west"]
    common = {"cluster east-lake", "cluster west-lake", "feed raw"}
    assert (set(east.entities()), set(west.entities())) == (common, common | {"feed own"})
    assert ("ann", "apply", "done") in west.audit()  # the user, not the front that asked for her
    assert answer.json()["status"] == "SUCCEEDED"
    again = submitted.post("apply", feed_yaml("own", on("west-lake")))
    assert (again.status_code, said(again)) == (200, {"west": "unchanged"})


def test_a_feed_that_moves_leaves_its_former_colo(submitted: World) -> None:
    assert said(submitted.post("apply", feed_yaml("moving", on("east-lake")))) == {"east": "done"}
    assert said(submitted.post("update", feed_yaml("moving", on("west-lake")))) == {"east": "done", "west": "done"}
    assert "feed moving" not in submitted.colos["east"].entities()
    assert "feed moving" in submitted.colos["west"].entities()
    assert said(submitted.delete("moving", "feed")) == {"west": "done"}
    assert "feed moving" not in submitted.colos["west"].entities()


@pytest.mark.parametrize(
    ("word", "definitions", "status", "says"),
    [
        ("submit", feed_yaml("lost", on("moon-lake")), 404, "cluster 'moon-lake', which no colo has"),
        ("submit", lakes("moon"), 400, "belongs to colo 'moon'; there is: east, west"),
        ("update", feed_yaml("none", on("east-lake")), 404, "there is no feed 'none' in any colo"),
        ("submit", "kind: feed\nname: bad\n", 422, "frequency: required key is missing"),
        ("submit", feed_yaml("raw", *BOTH, frequency="hours(2)"), 409, "is submitted already"),
        ("apply", feed_yaml("raw", *BOTH, sla={"low": "hours(3)", "high": "hours(2)"}), 422, "sla"),
    ],
    ids=["cluster", "colo", "update", "malformed", "other definition", "invalid"],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    submitted: World, word: str, definitions: str, status: int, says: str
) -> None:
    before = submitted.colos["east"].entities(), submitted.colos["west"].entities(), submitted.journal()
    answer = submitted.post(word, definitions)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"] + " ".join(answer.json().get("problems", ()))
    assert (submitted.colos["east"].entities(), submitted.colos["west"].entities(), submitted.journal()) == before


def test_who_asks_needs_a_role_in_the_colo(submitted: World) -> None:
    bob = submitted.client.called("bob", Role.EDITOR)  # a viewer in the colos
    answer = submitted.post("apply", feed_yaml("his", *BOTH), client=bob)
    assert answer.status_code == 403, answer.text
    assert "east: bob may not apply" in answer.json()["detail"]
    assert [one["outcome"] for one in answer.json()["colos"]] == ["refused", "refused"]
    ann = submitted.client.called("ann", Role.VIEWER)  # an editor there, but not with this token
    assert submitted.post("apply", feed_yaml("hers", *BOTH), client=ann).status_code == 403
    stranger = submitted.client.called("eve", Role.ADMIN)
    assert submitted.post("apply", feed_yaml("hers", *BOTH), client=stranger).status_code == 403
    assert "feed his" not in submitted.colos["east"].entities()


def test_a_colo_that_is_down_is_made_up_for(submitted: World) -> None:
    west = submitted.colos["west"]
    west.stop()
    changed = feed_yaml("raw", *BOTH, description="new")
    partial = submitted.post("update", changed)
    assert (partial.status_code, said(partial)) == (207, {"east": "done", "west": "away"}), partial.text
    assert partial.json()["status"] == "PARTIAL"
    assert "made up for when the colo takes it" in partial.json()["colos"][1]["message"]
    again = submitted.post("update", changed)
    assert (again.status_code, said(again)) == (207, {"east": "unchanged", "west": "away"})
    assert submitted.post("schedule", names=["raw"], kind="feed").status_code == 207
    assert said(submitted.post("suspend", names=["raw"], kind="feed")) == {"east": "done", "west": "away"}
    only = submitted.post("submit", feed_yaml("own", on("west-lake")))
    assert (only.status_code, said(only)) == (207, {"west": "away"})
    west.start()
    back = time.monotonic()
    wait_until(lambda: west.statuses().get("raw") == "SUSPENDED" and "feed own" in west.entities(), 120)
    assert time.monotonic() - back < 60
    assert west.entities()["feed raw"] == submitted.colos["east"].entities()["feed raw"]
    assert {one[0] for one in west.audit() if one[1] in ("apply", "suspend")} == {"ann"}
    assert said(submitted.post("update", changed)) == {"east": "unchanged", "west": "unchanged"}


def test_what_comes_after_an_absence_loses_nothing_from_before(submitted: World) -> None:
    west = submitted.colos["west"]
    west.stop()
    submitted.post("update", feed_yaml("raw", *BOTH, description="new"))
    with submitted.not_healing():
        west.start()
        assert said(submitted.post("schedule", names=["raw"], kind="feed")) == {"east": "done", "west": "done"}
    assert west.entities()["feed raw"]["description"] == "new"
    assert west.statuses()["raw"] == "RUNNING"
    west.stop()
    submitted.post("suspend", names=["raw"], kind="feed")
    with submitted.not_healing():
        west.start()
        assert said(submitted.post("update", feed_yaml("raw", *BOTH)))["west"] == "done"
    assert west.statuses()["raw"] == "SUSPENDED"
    assert not any(submitted.journal().values())


@pytest.mark.parametrize("is_healed", [True, False], ids=["made up for", "asked for"])
def test_what_was_deleted_and_submitted_meanwhile_begins_anew(submitted: World, is_healed: bool) -> None:
    west = submitted.colos["west"]
    assert said(submitted.post("schedule", names=["raw"], kind="feed"))["west"] == "done"
    west.stop()
    assert said(submitted.delete("raw", "feed"))["west"] == "away"
    assert said(submitted.post("submit", feed_yaml("raw", *BOTH, description="new")))["west"] == "away"
    with submitted.not_healing():
        west.start()
        if is_healed:
            submitted.prism.making_up.heal()
        else:
            assert said(submitted.post("apply", feed_yaml("raw", *BOTH, description="new")))["west"] == "done"
    assert west.entities()["feed raw"]["description"] == "new"
    assert west.statuses().get("raw", "SUBMITTED") == "SUBMITTED"
    assert not any(submitted.journal().values())


def test_a_full_disk_is_made_up_for(submitted: World, monkeypatch: pytest.MonkeyPatch) -> None:
    west = submitted.colos["west"]
    with monkeypatch.context() as patch:
        patch.setattr("falcon_assets.catalog.yaml_files.journal._write", _without_space)
        partial = submitted.post("update", feed_yaml("raw", *BOTH, description="new"))
    assert said(partial) == {"east": "away", "west": "away"}, "one process has both"
    submitted.prism.making_up.heal()
    assert west.entities()["feed raw"]["description"] == "new"


def _without_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_clients_of_apache_falcon_are_told_of_each_colo(submitted: World) -> None:
    submitted.colos["west"].stop()
    answer = submitted.client.ask("POST", "/api/entities/schedule/feed/raw").json()
    assert answer["status"] == "PARTIAL"
    east, west = answer["message"].splitlines()
    assert east == "east/raw(feed) scheduled successfully"
    assert west.startswith("west/https://localhost")


def test_what_was_deleted_meanwhile_is_deleted(submitted: World) -> None:
    west = submitted.colos["west"]
    west.stop()
    assert said(submitted.delete("raw", "feed")) == {"east": "done", "west": "away"}
    assert "feed raw" in west.entities()
    west.start()
    submitted.prism.making_up.heal()
    assert "feed raw" not in west.entities()
    assert "feed raw" not in submitted.colos["east"].entities()


def test_a_colo_that_refuses_is_told_again_only_when_asked(submitted: World) -> None:
    west = submitted.colos["west"]
    (west.settings.entity_defs / "broken.yaml").write_text("kind: feed\nname: broken\n")
    partial = submitted.post("apply", feed_yaml("raw", *BOTH, description="new"))
    assert (partial.status_code, said(partial)) == (207, {"east": "done", "west": "refused"}), partial.text
    assert not any(submitted.journal().values())
    (west.settings.entity_defs / "broken.yaml").unlink()
    submitted.prism.making_up.heal()
    assert west.entities()["feed raw"].get("description") is None
    again = submitted.post("apply", feed_yaml("raw", *BOTH, description="new"))
    assert (again.status_code, said(again)) == (200, {"east": "unchanged", "west": "done"})


def test_the_journal_is_made_anew_from_the_colos(submitted: World) -> None:
    submitted.lose_journal()
    again = submitted.post("submit", LAKES + feed_yaml("raw", *BOTH))
    assert (again.status_code, said(again)) == (200, {"east": "unchanged", "west": "unchanged"})
    submitted.lose_journal()
    assert said(submitted.post("schedule", names=["raw"])) == {"east": "done", "west": "done"}
    submitted.lose_journal()
    assert said(submitted.post("apply", feed_yaml("own", on("west-lake")))) == {"west": "done"}
    submitted.lose_journal()
    submitted.colos["east"].stop()
    scheduled = submitted.post("schedule", names=["own"])  # whether east has one, too, is not known
    assert said(scheduled)["west"] == "done"
    submitted.colos["east"].start()
    assert said(submitted.delete("own", "feed")) == {"west": "done"}


def test_dry_runs_change_nothing(submitted: World) -> None:
    answer = submitted.post("apply", feed_yaml("raw", *BOTH, description="new"), dry_run=True)
    assert answer.status_code == 200
    assert "+description: new" in answer.json()["diff"]
    assert submitted.colos["east"].entities()["feed raw"].get("description") is None
    assert ("west", "raw") in submitted.journal()


def test_a_colo_that_does_not_answer_costs_its_time_out(submitted: World) -> None:
    west = submitted.colos["west"]
    west.hang()
    began = time.monotonic()
    partial = submitted.post("apply", feed_yaml("raw", *BOTH, description="new"))
    took = time.monotonic() - began
    assert (partial.status_code, said(partial)) == (207, {"east": "done", "west": "unanswered"}), partial.text
    assert took < TIMEOUT * 1.5
    began = time.monotonic()
    own = submitted.post("apply", feed_yaml("own", on("east-lake")))  # nobody waits for west
    assert said(own) == {"east": "done"}
    assert time.monotonic() - began < took
    west.stop()
    west.start()
    wait_until(lambda: west.entities()["feed raw"].get("description") == "new", 120)


def test_what_an_away_colo_has_already_can_be_submitted_again(submitted: World) -> None:
    submitted.post("apply", feed_yaml("own", on("west-lake")))
    west, before = submitted.colos["west"], submitted.journal()
    west.stop()
    again = submitted.post("submit", LAKES + feed_yaml("raw", *BOTH))
    assert (again.status_code, said(again)) == (207, {"east": "unchanged", "west": "away"}), again.text
    assert "known to have cluster 'east-lake', cluster 'west-lake', feed 'raw'" in again.json()["colos"][1]["message"]
    more = submitted.post("submit", feed_yaml("raw", *BOTH) + feed_yaml("more", *BOTH))
    message = more.json()["colos"][1]["message"]
    assert "it is made up for when the colo takes it; it is known to have feed 'raw'" in message
    other = submitted.post("submit", feed_yaml("raw", *BOTH, frequency="hours(2)"))
    assert other.status_code == 409, other.text
    assert [(one["colo"], one["outcome"]) for one in other.json()["colos"]] == [("east", "refused"), ("west", "away")]
    alone = submitted.post("submit", feed_yaml("own", on("west-lake")))
    assert alone.status_code == 503, alone.text
    assert "which submitting does not replace" in alone.json()["detail"]
    assert submitted.journal() == before | {("east", "more"): False, ("west", "more"): True}
    west.start()
    submitted.prism.making_up.heal()
    assert "feed more" in west.entities()


def test_nothing_with_a_secret_is_kept_for_a_colo_that_is_away(submitted: World) -> None:
    west, secret = submitted.colos["west"], {"storage_options": {"secret": "hush-hush"}}
    with_secret, referring = (
        cluster_yaml("store", colo="east", **one)
        for one in (secret, {"storage_options": {"secret": {"env": "HUSH"}, "endpoint_url": "http://s3"}})
    )
    west.stop()
    partial = submitted.post("apply", with_secret)
    assert (partial.status_code, said(partial)) == (207, {"east": "done", "west": "away"}), partial.text
    assert "cluster 'store' is not kept for it, as a secret is written out there: write {env: NAME}" in partial.text
    assert submitted.journal() == {**submitted.journal(), ("east", "store"): False}
    assert ("west", "store") not in submitted.journal()
    alone = submitted.post("submit", feed_yaml("own", on("west-lake"), properties={"api_token": "hush-hush"}))
    assert (alone.status_code, "hush-hush" in alone.text) == (503, False), alone.text
    assert "feed 'own' is not kept for it" in alone.json()["detail"]
    with tables_engine(str(submitted.settings.database_url)).connect() as connection:
        kept = connection.execute(select(COLO_WANTED)).all()
    assert "hush-hush" not in str(kept)
    with submitted.not_healing():
        west.start()
        again = submitted.post("apply", with_secret)
        assert (again.status_code, said(again)) == (200, {"east": "unchanged", "west": "done"}), again.text
    assert submitted.journal()["west", "store"] is False
    west.stop()
    assert said(submitted.post("apply", referring)) == {"east": "done", "west": "away"}
    assert submitted.journal()["west", "store"] is True
    west.start()
    submitted.prism.making_up.heal()
    assert west.entities()["cluster store"] == submitted.colos["east"].entities()["cluster store"]


def test_a_secret_does_not_replace_what_is_made_up_for(submitted: World) -> None:
    """What was asked for before stays in the journal, and comes before what has the secret."""
    west = submitted.colos["west"]
    west.stop()
    submitted.post("update", feed_yaml("raw", *BOTH, description="new"))
    with_secret = feed_yaml("raw", *BOTH, description="newer", properties={"api_token": "hush-hush"})
    assert said(submitted.post("update", with_secret)) == {"east": "done", "west": "away"}
    assert submitted.journal()["west", "raw"] is True
    with submitted.not_healing():
        west.start()
        assert said(submitted.post("update", with_secret)) == {"east": "unchanged", "west": "done"}
    assert submitted.journal()["west", "raw"] is False
    assert west.entities()["feed raw"] == submitted.colos["east"].entities()["feed raw"]
