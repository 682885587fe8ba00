"""The versions of an instance are listed, and one of them is brought back by an ordinary publication."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.errors import FalconError, QueryError, StorageError
from falcon_assets.features.versions import operations as restoring
from falcon_assets.features.versions.operations import RestoreResult, instance_versions, restore_instance
from falcon_assets.history.database import try_lock
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.tables import AUDIT
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.runs.run_locks import instance_lock
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from tests.ledger.histories import content
from tests.operations.opening import installation_of
from tests.records import read_record
from tests.versioned import HOUR, TREE, kept, place, present, publish, without_versions

installation = installation_of(TREE, "2013-01-01T05:30Z", emptied=False)


def restored(installation: Installation, version: str, hour: str = "03", **told: object) -> RestoreResult:
    query = InstanceQuery("totals", start=parse_instant(f"2013-01-01T{hour}:00Z"))
    return restore_instance(installation, version, InstanceRequest(query, **told))  # type: ignore[arg-type]


def states(installation: Installation, hour: str = "03") -> list[tuple[str, str]]:
    found = instance_versions(installation, "totals", parse_instant(f"2013-01-01T{hour}:00Z"))
    return [(one.version, one.state) for one in found.versions]


def test_a_version_is_listed_restored_and_recorded(installation: Installation) -> None:
    assert states(installation) == []
    one, two = publish(installation, "one"), publish(installation, "two")
    assert sorted(states(installation)) == sorted([(one, "KEPT"), (two, "AVAILABLE")])
    data = {item["version"]: item for item in instance_versions(installation, "totals", HOUR).as_data()["items"]}
    assert (data[one]["process"], data[one]["bytes"], data[one]["records"]) == ("add-up", 3, 1)
    assert data[one]["until"] == "2013-01-01T05:30Z"
    assert Path(data[one]["path"], "part-0").read_text() == "one"

    planned = restored(installation, one, dry_run=True)
    assert (planned.changed, present(installation)) == (True, "two")
    done = restored(installation, one, reason="two was wrong")
    assert (done.changed, done.before, done.version) == (True, two, one)
    assert (present(installation), kept(installation)) == ("one", {two})
    assert sorted(states(installation)) == sorted([(one, "AVAILABLE"), (two, "KEPT")])
    key = dg.AssetKey(["primary", "totals"])
    asked = dg.AssetRecordsFilter(asset_key=key, asset_partitions=["2013-01-01T03:00Z"])
    event = installation.ledger.instance.fetch_materializations(asked, 1).records[0]
    said = read_record(FeedInstanceAvailable, event)
    assert said.restored_by == installation.settings.user
    assert [said_kept.version for said_kept in said.kept_versions or ()] == [two]
    (row,) = [item for item in instance_versions(installation, "totals", HOUR).versions if item.version == one]
    assert row.row is not None
    assert (row.row.process, row.row.records) == ("add-up", 1)  # who made it stays known

    again = restored(installation, one)
    assert (again.changed, again.before) == (False, one)
    with installation.ledger.engine.connect() as connection:
        audit = connection.execute(select(AUDIT).order_by(AUDIT.c.id)).all()
    assert [(entry.operation, entry.result, entry.reason) for entry in audit] == [
        ("instance restore", "done", "two was wrong"),
        ("instance restore", "unchanged", ""),
    ]
    folded = content(installation.ledger.engine)
    installation.ledger.rebuild()
    assert content(installation.ledger.engine) == folded


def test_the_beginning_of_a_version_is_enough(installation: Installation) -> None:
    one, two, three = (publish(installation, text) for text in ("one", "two", "three"))
    length = next(length for length in range(1, 33) if len({v[:length] for v in (one, two, three)}) == 3)
    assert restored(installation, one[:length]).version == one
    assert present(installation) == "one"
    assert not restored(installation, one[:length]).changed
    with pytest.raises(QueryError) as raised:
        restored(installation, "")
    assert str(raised.value).endswith(f" begin with : {', '.join(sorted([one, two, three]))}")


def test_what_was_killed_before_it_was_recorded_is_recorded_by_the_same_again(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = publish(installation, "one", parse_instant("2013-01-01T04:00Z"))
    two = publish(installation, "two", parse_instant("2013-01-01T04:00Z"))
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "_record", lambda *told: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            restored(installation, one, "04")
    assert present(installation, parse_instant("2013-01-01T04:00Z")) == "one"
    assert dict(states(installation, "04")) == {one: "REPLACED", two: "KEPT"}  # as far as is known
    assert restored(installation, one, "04").changed
    assert dict(states(installation, "04")) == {one: "AVAILABLE", two: "KEPT"}
    assert not restored(installation, one, "04").changed


def test_what_a_killed_run_replaced_is_listed_and_restored(installation: Installation) -> None:
    nominal = parse_instant("2013-01-01T05:00Z")
    one, two = publish(installation, "one", nominal), publish(installation, "two", nominal, killed=True)
    assert states(installation, "05") == [(one, "KEPT")]
    assert restored(installation, one, "05").changed
    assert present(installation, nominal) == "one"
    assert dict(states(installation, "05")) == {one: "AVAILABLE", two: "KEPT"}


def test_nothing_is_restored_while_a_run_has_the_instance(installation: Installation) -> None:
    nominal = parse_instant("2013-01-01T06:00Z")
    one, _ = publish(installation, "one", nominal), publish(installation, "two", nominal)
    with installation.ledger.engine.connect() as run:
        assert try_lock(run, instance_lock("add-up", "primary", nominal))
        run.commit()
        with pytest.raises(StorageError) as caught:
            restored(installation, one, "06")
        run.invalidate()
    assert str(caught.value) == (
        "totals 2013-01-01T06:00Z on primary is being written by a run: let it end, or kill it, and restore it then"
    )
    assert present(installation, nominal) == "two"


def test_wrong_questions_are_answered_in_a_sentence(installation: Installation) -> None:
    publish(installation, "one", parse_instant("2013-01-01T07:00Z"))
    with pytest.raises(StorageError) as caught:
        restored(installation, "abc", "07")
    assert str(caught.value) == (
        "totals 2013-01-01T07:00Z on primary: there is no version abc: it was not kept, or is removed already"
    )
    with pytest.raises(QueryError, match="say which instance is to be restored"):
        restore_instance(installation, "abc", InstanceRequest(InstanceQuery("totals")))
    with pytest.raises(FalconError, match=r"there is no feed 'total' \(did you mean 'totals'\?\)"):
        instance_versions(installation, "total", HOUR)
    without_versions(installation)
    with pytest.raises(StorageError, match="the feed keeps no versions: declare `versions` to keep those that come"):
        restored(installation, "abc", "07")
    assert place(installation).feed.versions is None
