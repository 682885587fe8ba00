"""Who acts, and what is refused; denials are in the audit."""

from __future__ import annotations

import grp
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, delete

from falcon_assets.errors import DeniedError, EntityInUseError, FalconError, InvalidDefinitionsError, QueryError
from falcon_assets.features.entities.changing import delete as delete_entities
from falcon_assets.features.entities.changing import submit, submit_and_schedule, update
from falcon_assets.features.entities.dependencies import entity_dependencies
from falcon_assets.features.entities.given import stored_definition
from falcon_assets.features.entities.listing import list_entities, show_entity
from falcon_assets.features.entities.lookup import lookup
from falcon_assets.features.entities.status import schedule_entities, suspend_entities
from falcon_assets.features.entities.summary import summarize_entities
from falcon_assets.features.entities.versions import entity_diff, entity_history, restore_entity
from falcon_assets.history.database import upgrade
from falcon_assets.history.tables import AUDIT
from falcon_assets.instances.views.details import instance_details
from falcon_assets.instances.views.feed_dependencies import feed_instance_dependencies
from falcon_assets.instances.views.listing import list_instances, summarize_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.acting import acting
from falcon_assets.operations.audit import AuditEntry, list_audit, read_audit
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import Query
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.settings import load_settings
from tests.features.entities.trees import BACKUP, DELAYS, HOURLY, PRIMARY, RAW, content, request, written
from tests.ledger.histories import empty

OWN_GROUP = grp.getgrgid(os.getgid()).gr_name
ACL = "acl: {owner: etl, group: %s, permission: '%s'}\n"
PRIVATE, PUBLIC = (RAW + ACL % ("data", mode) for mode in ("0750", "0755"))


@pytest.fixture
def told(database: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment: all entities are there, ``raw`` belongs to etl; nothing is recorded yet."""
    engine = create_engine(database)
    upgrade(engine)
    empty(engine)
    with engine.begin() as connection:
        connection.execute(delete(AUDIT))
    engine.dispose()
    root = written(tmp_path / "defs", a=PRIMARY, b=BACKUP, c=PUBLIC, d=DELAYS, e=HOURLY)
    (root / "hourly.sql").write_text("SELECT 1")
    yield {
        "FALCON_HOME": str(tmp_path / "home"),
        "FALCON_ENTITY_DEFS": str(root),
        "FALCON_DATABASE_URL": database,
        "FALCON_WEBSERVER_URL": "",
        "FALCON_CLOCK": "2013-01-03T06:00Z",
        "FALCON_SUPERUSERS": "ops, boss ,",
    }


@pytest.fixture
def by(told: dict[str, str]) -> Iterator[Callable[..., Installation]]:
    """The installation of a user of the operating system."""
    with ExitStack() as opened:
        yield lambda user, **more: Installation(replace(load_settings({**told, **more}), user=user), opened)


def audit(installation: Installation) -> list[AuditEntry]:
    with installation.database.connect() as connection:
        return read_audit(connection, (), None, 0, 100)[0]


def audited(installation: Installation) -> list[tuple[object, ...]]:
    return [(one.principal, one.operation, one.entities, one.result) for one in audit(installation)]


By = Callable[..., Installation]


def test_strangers_change_nothing_and_are_written_down(by: By, tmp_path: Path) -> None:
    bob, root = by("bob"), tmp_path / "defs"
    before = content(root)
    says = r"^bob may not %s feed 'raw', which belongs to 'etl' and the group 'data': ask them, or a superuser"
    with pytest.raises(DeniedError, match=says % "update"):
        update(bob, request(written(tmp_path / "new", a=PUBLIC.replace("days(90)", "days(80)"))))
    with pytest.raises(DeniedError, match=says % "delete"):
        delete_entities(bob, request("hourly", "raw"))
    with pytest.raises(DeniedError, match=says % "schedule"):
        schedule_entities(bob, request("raw", "hourly"))
    with pytest.raises(DeniedError, match=says % "submit-and-schedule"):
        submit_and_schedule(bob, request(written(tmp_path / "same", a=PUBLIC)))
    assert content(root) == before
    raw = ("feed", "raw")
    assert audited(bob) == [
        ("bob", "submit-and-schedule", [raw], "denied"),
        ("bob", "schedule", [raw, ("process", "hourly")], "denied"),
        ("bob", "delete", [raw, ("process", "hourly")], "denied"),
        ("bob", "update", [raw], "denied"),
    ]
    assert audit(bob)[1].message.startswith("bob may not schedule feed 'raw'")


def test_nobody_takes_an_entity_by_another_acl(by: By, tmp_path: Path) -> None:
    mine = PUBLIC.replace("owner: etl", "owner: bob")
    with pytest.raises(DeniedError):
        update(by("bob"), request(written(tmp_path / "mine", a=mine)))
    with pytest.raises(DeniedError):
        update(by("bob"), request(written(tmp_path / "all", a=RAW)))
    assert update(by("etl"), request(written(tmp_path / "mine", a=mine))).changed
    with pytest.raises(DeniedError, match="etl may not"):
        update(by("etl"), request(written(tmp_path / "back", a=PUBLIC)))


@pytest.mark.parametrize("user", ["etl", "ops", "boss"])
def test_owner_and_superusers_may(by: By, user: str) -> None:
    assert schedule_entities(by(user), request("raw")).changed
    assert not schedule_entities(by(user), request("raw", reason="once more")).changed
    suspend_entities(by(user), request("raw", dry_run=True))
    raw = [("feed", "raw")]
    assert audited(by(user)) == [(user, "schedule", raw, "unchanged"), (user, "schedule", raw, "done")]
    last = audit(by(user))[0]
    assert (last.reason, last.way, last.os_user, last.instances) == ("once more", "api", user, None)


def test_members_of_the_group_may(by: By, tmp_path: Path) -> None:
    me = load_settings({"FALCON_HOME": str(tmp_path)}).user
    mine = RAW + ACL % (OWN_GROUP, "0700")
    update(by("etl"), request(written(tmp_path / "group", a=mine)))
    assert schedule_entities(by(me), request("raw")).changed
    with pytest.raises(DeniedError):
        schedule_entities(by("nobody"), request("raw"))


def test_what_may_not_be_read_is_left_out_or_refused(by: By, told: dict[str, str], tmp_path: Path) -> None:
    bob, etl = by("bob"), by("etl")
    update(etl, request(written(tmp_path / "private", a=PRIVATE)))
    path = "/raw/2013/01/01/00"
    assert len(list_entities(etl).items) == len(list_entities(by("bob")).items) + 1
    assert "raw" not in json.dumps([one.name for one in list_entities(by("bob")).items])
    assert (len(lookup(etl, path).items), lookup(by("bob"), path).items) == (2, ())
    says = "^bob may not read feed 'raw', which belongs to 'etl' and the group 'data': ask them, or a superuser"
    for read in (show_entity, stored_definition, entity_dependencies, entity_history, entity_diff):
        with pytest.raises(DeniedError, match=says):
            read(by("bob"), "raw")
        read(by("etl"), "raw")
    everything = InstanceQuery(filters=(("entity", "raw"),), type="feed", limit=5)
    for name in (None, "raw"):
        assert len(list_instances(by("etl"), replace(everything, name=name)).items) == 5
    assert list_instances(by("bob"), everything).items == ()
    assert summarize_instances(by("bob"), everything) == []
    with pytest.raises(DeniedError, match=says):
        list_instances(by("bob"), replace(everything, name="raw"))
    with pytest.raises(DeniedError, match=says):
        feed_instance_dependencies(by("bob"), "raw", parse_instant("2013-01-01T00:00Z"), "primary")
    with pytest.raises(DeniedError, match=says):
        instance_details(by("bob"), "raw from primary", parse_instant("2013-01-01T00:00Z"))
    assert "raw" not in [one.entity.name for one in summarize_entities(by("bob"), Query(), 1).items]
    with pytest.raises(DeniedError, match=says):
        restore_entity(bob, 1, request("raw", dry_run=True))
    assert {one[:2] for one in audited(bob) if one[3] == "denied"} == {
        ("bob", "show"),
        ("bob", "dependency"),
        ("bob", "history"),
        ("bob", "restore"),
        ("bob", "instance list"),
        ("bob", "explain"),
    }
    (tmp_path / "defs" / "c.yaml").unlink()
    (tmp_path / "defs" / "d.yaml").unlink()
    (tmp_path / "defs" / "e.yaml").unlink()
    with pytest.raises(DeniedError, match=says):
        entity_history(by("bob"), "raw")  # it is private also when it is gone


def test_the_owner_of_a_malformed_acl_mends_it(by: By, tmp_path: Path) -> None:
    written(tmp_path / "defs", c=RAW + "acl: {owner: etl, permission: rwx}\n")
    new = request(written(tmp_path / "new", a=PUBLIC))
    with pytest.raises(DeniedError):
        update(by("bob"), new)
    assert update(by("etl"), new).changed


def test_what_fails_is_written_down(by: By, tmp_path: Path) -> None:
    etl = by("etl")
    with pytest.raises(InvalidDefinitionsError):
        submit(etl, request(written(tmp_path / "bad", a=RAW.replace("name: raw", "name: raw/2")), reason="try"))
    entry = audit(etl)[0]
    assert (entry.result, entry.reason, entry.entities) == ("failed", "try", [("feed", "raw/2")])
    assert "a.yaml:" in entry.message


def test_a_principal_is_believed_of_proxy_users_only(by: By) -> None:
    with pytest.raises(DeniedError, match=r"^bob may not act for 'etl': leave the principal out, or name bob in"):
        schedule_entities(by("bob"), request("raw", actor="etl"))
    assert audited(by("bob")) == [("bob", "schedule", [], "denied")]
    proxy = by("dagster", FALCON_PROXY_USERS="dagster")
    with pytest.raises(DeniedError, match=r"^bob may not schedule"):
        schedule_entities(proxy, request("raw", actor="bob"))
    assert schedule_entities(proxy, request("raw", actor="etl")).actor == "etl"
    assert [(one.principal, one.os_user, one.result) for one in audit(proxy)[:2]] == [
        ("etl", "dagster", "done"),
        ("bob", "dagster", "denied"),
    ]
    assert acting(by("bob").settings, "bob").name == "bob"  # oneself is no other


def test_a_command_line_may_name_the_principal_by_the_same_rule(by: By) -> None:
    with requests_from("cli", actor="etl"):
        with pytest.raises(DeniedError, match=r"^bob may not act for 'etl'"):
            schedule_entities(by("bob"), request("raw"))
        proxy = by("dagster", FALCON_PROXY_USERS="dagster")
        assert schedule_entities(proxy, request("raw")).actor == "etl"
    assert (audit(proxy)[0].principal, audit(proxy)[0].os_user, audit(proxy)[0].way) == ("etl", "dagster", "cli")


@pytest.mark.parametrize("name", ["", "no such user", "nul\0", "\udcff"])
def test_groups_of_strange_names(by: By, name: str) -> None:
    who = acting(by("dagster", FALCON_PROXY_USERS="dagster").settings, name)
    assert who.name == (name or "dagster")


def test_a_principal_that_the_system_does_not_know_has_no_groups_of_this_process(
    by: By, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = by("unknown", FALCON_PROXY_USERS="unknown").settings
    assert acting(settings, "unknown").groups == frozenset()
    assert OWN_GROUP in acting(settings).groups


def test_a_refused_command_is_audited_with_its_entities(by: By, tmp_path: Path) -> None:
    etl = by("etl")
    with pytest.raises(EntityInUseError):
        delete_entities(etl, request("raw"))
    with pytest.raises(InvalidDefinitionsError):
        update(etl, request(written(tmp_path / "new", a=PUBLIC.replace("hours(1)", "now"))))
    with pytest.raises(FalconError):
        schedule_entities(etl, request("rave"))
    with pytest.raises(FalconError):
        delete_entities(etl, request(written(tmp_path / "odd", a="kind: feed\nname: [\n"), "raw", "rave"))
    assert audited(etl) == [
        ("etl", "delete", [("feed", "raw"), ("entity", "rave")], "failed"),
        ("etl", "schedule", [("entity", "rave")], "failed"),
        ("etl", "update", [("feed", "raw")], "failed"),
        ("etl", "delete", [("feed", "raw")], "failed"),
    ]


@pytest.mark.parametrize("name", ["n" * 5000, "\ud800", "nul\0", "a/" * 5000, "\udcff.yaml"])
def test_names_that_nothing_can_have_are_refused_in_a_sentence(by: By, name: str) -> None:
    for operation in (submit, update, schedule_entities, suspend_entities):
        with pytest.raises(FalconError) as refused:
            operation(by("etl"), request(name))
        assert len(str(refused.value)) < 12000
        str(refused.value).encode()
    for takes_files in (True, False):
        try:
            delete_entities(by("etl"), request(name, takes_files=takes_files))
        except FalconError as error:
            str(error).encode()
    assert {entry.result for entry in audit(by("etl"))} <= {"failed", "unchanged"}


def test_an_empty_field_to_sort_by_is_refused(by: By) -> None:
    with pytest.raises(QueryError, match=r"^there is no field ''"):
        list_audit(by("etl"), Query(sort=""))


def test_without_the_database_a_change_is_made_and_not_audited(
    by: By, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = by("etl", FALCON_DATABASE_URL="postgresql://falcon@127.0.0.1:1/none")
    assert update(away, request(written(tmp_path / "new", a=PRIVATE))).changed
    assert caplog.messages == ["The database cannot be reached: this update is not audited."]
    with pytest.raises(DeniedError):
        update(
            by("bob", FALCON_DATABASE_URL="postgresql://falcon@127.0.0.1:1/none"),
            request(written(tmp_path / "back", a=PUBLIC)),
        )
