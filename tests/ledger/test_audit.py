from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, delete

from falcon_assets.history.database import upgrade
from falcon_assets.history.tables import AUDIT
from falcon_assets.operations.audit import AuditEntry, read_audit, write_audit
from tests.ledger.histories import ledger_engine

AT = datetime(2013, 1, 3, 6, tzinfo=UTC)
PLAIN = AuditEntry(
    AT, AT, "ann", "dagster", "job", "suspend", [("feed", "raw")], None, None, None, "", "done", ""
)  # fmt: skip
RERUN = replace(
    PLAIN,
    at=AT - timedelta(hours=1),  # a clock may be set back
    principal="Bob",
    way="cli",
    operation="rerun",
    entities=[("process", "hourly"), ("process", "raw")],
    instances=2,
    first=AT,
    last=AT + timedelta(hours=1),
    reason="rows\n'lost'; \ud800",
    result="failed",
    message="no \x00",
)


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    made = ledger_engine(database)
    upgrade(made)
    with made.begin() as connection:
        connection.execute(delete(AUDIT))
        write_audit(connection, PLAIN)
        write_audit(connection, RERUN)
    yield made
    made.dispose()


def found(engine: Engine, *filters: tuple[str, str], sort: str | None = None) -> list[str]:
    with engine.connect() as connection:
        entries, total = read_audit(connection, filters, sort, 0, 10)
    assert total == len(entries)
    return [one.operation for one in entries]


def test_what_was_written_is_read_the_latest_first(engine: Engine) -> None:
    with engine.connect() as connection:
        entries, _ = read_audit(connection, (), None, 0, 10)
    printed = replace(RERUN, reason="rows\\n'lost'; \\ud800", message="no \\x00")
    assert entries == [printed, PLAIN]


@pytest.mark.parametrize(
    ("filters", "operations"),
    [
        ([("principal", "bob")], ["rerun"]),
        ([("user", "dagster"), ("result", "done")], ["suspend"]),
        ([("entity", "raw")], ["rerun", "suspend"]),
        ([("entity", "hourly")], ["rerun"]),
        ([("kind", "feed")], ["suspend"]),
        ([("way", "cli"), ("way", "job")], ["rerun", "suspend"]),
        ([("way", "cli"), ("operation", "suspend")], []),
        ([("entity", "\ud800'; DROP TABLE falcon.audit")], []),
    ],
)
def test_filters(engine: Engine, filters: list[tuple[str, str]], operations: list[str]) -> None:
    assert found(engine, *filters) == operations


def test_order_and_parts(engine: Engine) -> None:
    assert found(engine, sort="at") == ["rerun", "suspend"]
    assert found(engine, sort="-at") == ["suspend", "rerun"]
    with engine.connect() as connection:
        entries, total = read_audit(connection, (), "operation", 1, 1)
    assert ([one.operation for one in entries], total) == (["suspend"], 2)
