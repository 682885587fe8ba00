from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import create_engine, delete

from falcon_assets.history.database import upgrade
from falcon_assets.history.tables import AUDIT, ENTITY_STATUS
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.main import falcon
from tests.cli.test_entity_command import ENTITIES
from tests.processes import free_port

Call = Callable[..., Result]


@pytest.fixture
def call(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Call]:
    """Calls the command at six o'clock; nothing was commanded yet, and there is no webserver."""
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-03T06:00Z")
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    engine = create_engine(settings.database_url or "")
    upgrade(engine)
    with engine.begin() as connection:
        connection.execute(delete(ENTITY_STATUS))
        connection.execute(delete(AUDIT))
    engine.dispose()
    instance.wipe_daemon_heartbeats()
    yield lambda *arguments: CliRunner().invoke(falcon, arguments)


def answered(call: Call, *arguments: str, code: int = 0) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_who_did_what(call: Call, settings: Settings) -> None:
    assert answered(call, "admin", "audit") == {"items": [], "total": 0, "next": None}
    call("entity", "suspend", "both", "--kind", "process", "--reason", "[b]broken")
    call("entity", "suspend", "raw", "both", "--kind", "feed")
    call("entity", "suspend", "raw", "--dry-run")
    page = answered(call, "admin", "audit")
    assert (page["total"], page["next"]) == (2, None)
    failed, done = page["items"]
    assert re.match("20[0-9-]+T[0-9:.]+[+]00:00$", done.pop("recorded"))
    assert done == {
        "at": "2013-01-03T06:00:00+00:00",
        "principal": settings.user,
        "user": settings.user,
        "way": "cli",
        "operation": "suspend",
        "entities": [{"kind": "process", "name": "both"}],
        "instances": None,
        "first": None,
        "last": None,
        "reason": "[b]broken",
        "result": "done",
        "message": "",
    }
    assert (failed["result"], failed["message"]) == ("failed", "feed 'both': what is SUBMITTED cannot be suspended")
    table = call("admin", "audit").stdout
    assert "process both" in table
    assert "[b]broken" in table
    assert "(feed 'both': what is SUBMITTED cannot be suspended)" in table


def test_parts_of_the_audit(call: Call) -> None:
    for name in ("suspend", "resume", "suspend"):
        call("entity", name, "both", "--kind", "process")
    first = answered(call, "admin", "audit", "--limit", "2", "--sort", "at")
    assert [one["operation"] for one in first["items"]] == ["suspend", "resume"]
    assert (first["total"], first["next"]) == (3, 2)
    assert answered(call, "admin", "audit", "--limit", "2", "--offset", "2")["next"] is None
    assert answered(call, "admin", "audit", "--filter", "operation=resume", "--filter", "entity=both")["total"] == 1
    assert "2 of 3 lines; the next ones: --offset 2" in call("admin", "audit", "--limit", "2").stdout
    wrong = call("admin", "audit", "--filter", "reason=x")
    assert (wrong.exit_code, "there is no field 'reason'" in wrong.stderr) == (2, True)


def test_versions(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    found = answered(call, "admin", "version")
    assert list(found) == ["falcon_assets", "dagster", "pyspark", "python", "ledger"]
    assert found["dagster"] == dg.__version__
    assert re.fullmatch("[0-9]{4}", found["ledger"])
    assert f"Dagster: {dg.__version__}\n" in call("admin", "version").stdout
    monkeypatch.setenv("FALCON_DATABASE_URL", "postgresql://falcon@127.0.0.1:1/none")
    assert answered(call, "admin", "version")["ledger"] is None
    assert "revision of the ledger: not known, the database cannot" in call("admin", "version").stdout


def checks(found: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    return {one["check"]: (one["status"] == "ok", one["text"]) for one in found["checks"]}


def test_status_says_what_is_wrong(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    found = answered(call, "admin", "status", code=1)
    assert (found["ok"], found["colo"], found["behind"]) == (False, None, 0)
    assert found["entities"] == {"SUBMITTED": 2, "RUNNING": 1}
    assert found["clock"] == "2013-01-03T06:00:00+00:00 (2013-01-03T06:00Z, standing still)"
    known = checks(found)
    assert known["definitions"] == (True, "1 cluster, 2 feeds, 1 process")
    assert known["webserver"] == (True, "not checked: FALCON_WEBSERVER_URL is empty")
    assert known["daemon"][0] is False
    assert known["daemon"][1] == "Dagster's daemon has never run here: nothing runs by itself"
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("FALCON_WEBSERVER_URL", url)
    ok, text = checks(answered(call, "admin", "status", code=1))["webserver"]
    assert (ok, text.startswith(f"{url} does not answer (")) == (False, True)


def test_status_without_definitions_or_database(
    call: Call, write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entities({"all.yaml": ENTITIES.replace("hours(1)", "hours(0)", 1)})
    monkeypatch.setenv("FALCON_DATABASE_URL", "postgresql://falcon:secret@127.0.0.1:1/none")
    found = answered(call, "admin", "status", code=1)
    assert (found["entities"], found["behind"]) == (None, None)
    known = checks(found)
    assert known["definitions"][0] is False
    assert known["definitions"][1] == "1 problem in the entity definitions"
    assert (known["database"][0], "secret" in json.dumps(found)) == (False, False)
    shown = call("admin", "status")
    assert (shown.exit_code, "colo: all" in shown.stdout) == (1, True)
