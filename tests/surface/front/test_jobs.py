"""The operation jobs act for who launched them by the front, and for nobody else because of tags or configuration."""

from __future__ import annotations

import dagster as dg
import pytest
from sqlalchemy import create_engine, select

from falcon_assets.history.dagster_internals.stamps import PRINCIPAL, signing_key, stamp_of
from falcon_assets.history.database import upgrade
from falcon_assets.history.tables import AUDIT
from falcon_assets.model.access import Principal, Role
from falcon_assets.settings import Settings
from tests.surface.front.conftest import ENTITIES
from tests.three_ways import in_job


@pytest.fixture(scope="module", autouse=True)
def entities(settings: Settings) -> None:
    settings.entity_defs.mkdir()
    (settings.entity_defs / "all.yaml").write_text(ENTITIES)
    upgrade(create_engine(settings.database_url or ""))


@pytest.fixture(autouse=True)
def jobs_may_nothing_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCON_JOBS", "nothing")
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")


def touched(instance: dg.DagsterInstance, who: Principal, name: str, **config: str) -> object:
    tags = stamp_of(who, signing_key(instance, make=True))
    return in_job(instance, tags=tags, operation="touch", names=[name], **config)


@pytest.mark.parametrize(
    ("who", "free", "owned"),
    [
        (Principal("vic", role=Role.VIEWER), False, False),
        (Principal("leo", role=Role.LAUNCHER), False, False),
        (Principal("eva", role=Role.EDITOR), True, False),
        (Principal("adam", role=Role.ADMIN), True, True),
        (Principal("ann", role=Role.VIEWER), False, True),
        (Principal("bob", frozenset({"data"}), role=Role.VIEWER), False, True),
    ],
    ids=lambda one: one.name if isinstance(one, Principal) else str(one),
)
def test_the_role_of_who_launched_it(instance: dg.DagsterInstance, who: Principal, free: bool, owned: bool) -> None:
    said = {name: touched(instance, who, name) for name in ("free", "owned")}
    assert {name: f"{who.name} may not touch" not in str(one) for name, one in said.items()} == {
        "free": free,
        "owned": owned,
    }


def test_the_audit_has_who_launched_it(instance: dg.DagsterInstance, settings: Settings) -> None:
    assert "free" in str(touched(instance, Principal("zoe", role=Role.ADMIN, way="token"), "free"))
    with create_engine(settings.database_url or "").connect() as connection:
        rows = connection.execute(select(AUDIT.c.way, AUDIT.c.result).where(AUDIT.c.principal == "zoe")).all()
    assert [tuple(row) for row in rows] == [("job", "done")]


def test_the_configuration_names_nobody_else(instance: dg.DagsterInstance) -> None:
    said = touched(instance, Principal("leo", role=Role.LAUNCHER), "free", principal="root")
    assert said == "leo may not act for 'root': leave the principal out"


@pytest.mark.parametrize("signed", ["", "00 ", "ann "])
def test_a_forged_stamp_is_none(instance: dg.DagsterInstance, signed: str) -> None:
    real = stamp_of(Principal("root", is_superuser=True, role=Role.ADMIN), signing_key(instance, make=True))[PRINCIPAL]
    forged = {PRINCIPAL: signed + real.partition(" ")[2]}
    said = in_job(instance, tags=forged, operation="touch", names=["free"])
    assert str(said).startswith("FALCON_JOBS does not let jobs change entities")


def test_without_a_key_nobody_is_believed(instance: dg.DagsterInstance) -> None:
    forged = stamp_of(Principal("root", role=Role.ADMIN), b"")
    said = in_job(instance, tags=forged, operation="touch", names=["free"])
    assert str(said).startswith("FALCON_JOBS does not let jobs change entities")
