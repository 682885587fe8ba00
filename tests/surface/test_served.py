"""The installation of a server: many users at once, changed definitions, bounds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from falcon_assets.errors import DeniedError, UnknownEntityError
from falcon_assets.features.entities.operations import ScheduleEntities, SubmitEntities
from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.instances.operations.questions import ListInstances
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.audit import AuditEntry, ListAudit
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation
from falcon_assets.settings import Settings
from falcon_assets.surface.served import BusyError, ServedInstallation, TimedOutError, open_served
from tests.builders import cluster_yaml, feed_yaml

ANN, EVE = (Principal(name, role=role, way="token") for name, role in (("ann", Role.EDITOR), ("eve", Role.VIEWER)))
ROOT = Principal("root", role=Role.ADMIN, way="oidc")
MINE = {"owner": "ann", "group": "", "permission": "0700"}


@pytest.fixture
def definitions(write_entities: Callable[[dict[str, str]], Path]) -> Path:
    return write_entities({"all.yaml": cluster_yaml("primary") + feed_yaml("raw") + feed_yaml("own", acl=MINE)})


@pytest.fixture
def served(settings: Settings, definitions: Path) -> Iterator[ServedInstallation]:
    with open_served(seconds=20) as found:
        yield found


def names(served: ServedInstallation, who: Principal) -> list[str]:
    return [one.name for one in asyncio.run(served.perform(who, "rest", ListEntities())).items]


def test_changed_definitions_are_seen_at_once_and_kept_otherwise(served: ServedInstallation, definitions: Path) -> None:
    assert names(served, ANN) == ["primary", "raw", "own"]
    assert served.definitions()[0] is served.definitions()[0]
    (definitions / "more.yaml").write_text(feed_yaml("more"))
    assert names(served, ANN) == ["primary", "raw", "own", "more"]
    asyncio.run(served.perform(ANN, "rest", SubmitEntities(definitions=feed_yaml("sent"))))
    assert "sent" in names(served, ANN)
    (definitions / "more.yaml").unlink()
    assert "more" not in names(served, ANN)


def test_each_request_is_of_its_user(served: ServedInstallation) -> None:
    async def many() -> list[list[str]]:
        asked = [served.perform(who, "rest", ListEntities()) for who in (ANN, EVE) * 20]
        return [[one.name for one in page.items] for page in await asyncio.gather(*asked)]

    assert [("own" in one, "raw" in one) for one in asyncio.run(many())] == [(True, True), (False, True)] * 20


def test_what_is_refused_is_in_the_audit_with_who_asked_and_how(served: ServedInstallation) -> None:
    with pytest.raises(DeniedError, match="eve may not schedule"):
        asyncio.run(served.perform(EVE, "rest", ScheduleEntities(names=("raw",))))
    found = asyncio.run(served.perform(ROOT, "page", ListAudit(limit=1)))
    (entry,) = found.items
    assert isinstance(entry, AuditEntry)
    assert (entry.principal, entry.way, entry.result) == ("eve", "rest", "denied")


def test_a_request_sees_one_state_of_the_definitions(served: ServedInstallation, definitions: Path) -> None:
    def changed_meanwhile(installation: Installation) -> tuple[list[str], list[str]]:
        before = [*installation.entities.feeds]
        (definitions / "later.yaml").write_text(feed_yaml("later"))
        return before, [*installation.entities.feeds]

    before, after = asyncio.run(served.call(changed_meanwhile))
    assert before == after
    assert "later" in served.definitions()[0].feeds


def test_reads_and_changes_at_once(served: ServedInstallation) -> None:
    async def many() -> None:
        listed: list[Operation] = [ListEntities(), ListInstances(name="raw", type="feed")] * 10
        changes: list[Operation] = [SubmitEntities(definitions=feed_yaml(f"feed-{number}")) for number in range(8)]
        await asyncio.gather(*(served.perform(ANN, "rest", one) for one in [*changes, *listed]))

    asyncio.run(many())
    assert {f"feed-{number}" for number in range(8)} <= {*names(served, ANN)}


def test_no_more_wait_than_may_and_none_for_longer(settings: Settings, definitions: Path) -> None:
    go_on = threading.Event()

    async def crowd(served: ServedInstallation) -> list[object]:
        waiting = [asyncio.ensure_future(served.call(lambda _: go_on.wait(60), 0.2)) for _ in range(3)]
        return await asyncio.gather(*waiting, return_exceptions=True)

    with open_served(threads=1, waiting=1) as served:
        try:
            said = {type(one).__name__: str(one) for one in asyncio.run(crowd(served))}
        finally:
            go_on.set()
    assert said.keys() == {TimedOutError.__name__, BusyError.__name__}
    assert "longer than 0.2 seconds" in said[TimedOutError.__name__]


def test_what_is_slow_is_opened_once(settings: Settings, definitions: Path) -> None:
    with open_served() as served, ThreadPoolExecutor(8) as threads:
        found = [*threads.map(lambda _: asyncio.run(served.call(lambda one: one.instance)), range(8))]
    assert len({id(one) for one in found}) == 1


def test_an_error_of_the_operation_is_that_of_the_request(served: ServedInstallation) -> None:
    with pytest.raises(UnknownEntityError, match="'nothing'"):
        asyncio.run(served.perform(ANN, "rest", ScheduleEntities(names=("nothing",))))
