from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect, text

import falcon_assets.history
from falcon_assets.catalog.stored_tree import masked
from falcon_assets.errors import SettingsError
from falcon_assets.history.database import LEDGER_LOCK, lock_in_transaction, upgrade
from falcon_assets.history.folding.fold import fold, rebuild
from falcon_assets.history.tables import METADATA, SCHEMA
from tests.ledger.histories import content, countable_facts, history_of, ledger_engine, until_waiting
from tests.processes import forked

TABLES = {table.name for table in METADATA.sorted_tables} | {"alembic_version"}


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """No schema ``falcon`` there; a table of somebody else's is."""
    made = ledger_engine(database)
    with made.begin() as connection:
        connection.execute(text(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"))
        for schema in ("others", "public"):  # with tables of the same names as ours
            connection.execute(text(f"DROP SCHEMA IF EXISTS {schema} CASCADE"))
            connection.execute(text(f"CREATE SCHEMA {schema}"))
            connection.execute(text(f"CREATE TABLE {schema}.fold (own text)"))
            connection.execute(text(f"CREATE TABLE {schema}.alembic_version AS SELECT 'theirs' AS version_num"))
    yield made
    made.dispose()


def schemas(engine: Engine) -> dict[str, set[str]]:
    found = inspect(engine)
    names = set(found.get_schema_names()) - {"information_schema"}
    return {name: set(found.get_table_names(name)) for name in names}


def objects(engine: Engine) -> list[tuple[object, ...]]:
    """The tables, indexes and columns of our schema; a table made anew has another oid."""
    statement = text(
        "SELECT c.oid, c.relname, c.relkind, a.attname, a.atttypid, a.attnotnull FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = to_regnamespace(:schema) "
        "ORDER BY c.oid, a.attnum"
    )
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(statement, {"schema": SCHEMA})]


def migrate(engine: Engine, to: str, *, up: bool) -> None:
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(falcon_assets.history.__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        (command.upgrade if up else command.downgrade)(config, to)


def make_oldest(engine: Engine) -> None:
    """A ledger of the oldest revision that is migrated, as it was made then."""
    with engine.begin() as connection:
        connection.execute(text(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"))
        connection.exec_driver_sql((Path(__file__).parent / "schema_0028.sql").read_text().replace("%", "%%"))
        connection.execute(text(f"INSERT INTO {SCHEMA}.alembic_version VALUES ('0028')"))


def differences(engine: Engine) -> list[object]:
    """What autogenerate would put into the next migration."""
    options = {
        "include_schemas": True,
        "include_name": lambda name, kind, parents: name == SCHEMA if kind == "schema" else True,
        "version_table_schema": SCHEMA,
        "compare_type": True,
        "compare_server_default": True,
    }
    with engine.connect() as connection:
        found: list[object] = compare_metadata(MigrationContext.configure(connection, opts=options), METADATA)
        return found


def test_a_new_ledger_and_a_migrated_one_have_the_tables_of_the_code(engine: Engine) -> None:
    assert len(differences(engine)) >= len(METADATA.tables)
    upgrade(engine)
    assert differences(engine) == []
    make_oldest(engine)
    assert differences(engine) != []
    upgrade(engine)
    assert differences(engine) == []


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("0027", "migrates those from 0028 on: run falcon ledger status with an earlier version"),
        ("9999", "knows only those up to 0..."),
    ],
)
def test_a_ledger_that_cannot_be_migrated_is_left_alone(engine: Engine, revision: str, said: str) -> None:
    upgrade(engine)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {SCHEMA}.alembic_version SET version_num = :now"), {"now": revision})
    before = objects(engine)
    with pytest.raises(SettingsError, match=said):
        upgrade(engine)
    assert objects(engine) == before


@pytest.mark.parametrize("projects", [fold, rebuild], ids=["fold", "rebuild"])
def test_a_process_of_an_older_version_changes_nothing_any_more(engine: Engine, projects: Callable[..., int]) -> None:
    """It has opened the ledger, and goes on to run; then another process migrates it to what it does not know."""
    upgrade(engine)
    fold(engine, history_of(countable_facts(4)))
    before = content(engine)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {SCHEMA}.alembic_version SET version_num = '9999'"))
    with pytest.raises(SettingsError, match="are of revision 9999, and this version of falcon-assets knows only those"):
        projects(engine, history_of(countable_facts(20)))
    assert content(engine) == before


def test_a_difference_would_be_seen(engine: Engine) -> None:
    upgrade(engine)
    with engine.begin() as connection:
        connection.execute(text("DROP INDEX falcon.ix_consumed_feed"))
        connection.execute(text("ALTER TABLE falcon.fold ALTER event_id TYPE integer"))
        connection.execute(text("COMMENT ON COLUMN falcon.fold.only IS 'else'"))
    assert len(differences(engine)) == 3


def test_other_schemas_are_left_alone(engine: Engine) -> None:
    before = schemas(engine)
    upgrade(engine)
    assert schemas(engine) == {**before, SCHEMA: TABLES}
    assert before == {"public": {"fold", "alembic_version"}, "others": {"fold", "alembic_version"}}
    with engine.connect() as connection:
        for schema in before:
            assert connection.execute(text(f"SELECT * FROM {schema}.alembic_version")).all() == [("theirs",)]


def test_a_second_upgrade_does_nothing(engine: Engine) -> None:
    upgrade(engine)
    fold(engine, history_of(countable_facts(20)))
    made, rows = objects(engine), content(engine)
    upgrade(engine)
    assert objects(engine) == made
    assert content(engine) == rows


def test_two_processes_at_once(engine: Engine, database: str) -> None:
    with engine.begin() as connection:
        lock_in_transaction(connection, LEDGER_LOCK)
        children = [forked(lambda: upgrade(ledger_engine(database))) for _ in range(2)]
        until_waiting(engine, 2)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert differences(engine) == []
    versions = Path(falcon_assets.history.__file__).parent / "migrations" / "versions"
    newest = max(file.name[:4] for file in versions.glob("[0-9]*.py"))
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM falcon.alembic_version")).all() == [(newest,)]


def test_down_to_the_oldest_and_up_again(engine: Engine) -> None:
    facts = countable_facts(20)
    upgrade(engine)
    fold(engine, history_of(facts))
    rows = content(engine)
    migrate(engine, "0028", up=False)
    assert differences(engine) != []
    upgrade(engine)
    assert differences(engine) == []
    rebuild(engine, history_of(facts))
    assert content(engine) == rows


def test_an_upgrade_that_fails_leaves_nothing(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE SCHEMA falcon"))
        connection.execute(text("CREATE TABLE falcon.audit (in_the_way text)"))  # the last one made
    with pytest.raises(Exception, match='relation "audit" already exists'):
        upgrade(engine)
    assert schemas(engine)[SCHEMA] == {"audit"}


def test_secrets_that_were_recorded_are_starred(engine: Engine) -> None:
    upgrade(engine)
    migrate(engine, "0033", up=False)
    definition = "kind: process\nproperties: {db_password: hunter2, url: 'jdbc:x://u:hunter2@h/d', size: '1'}\n"
    with engine.begin() as connection:
        connection.execute(
            text(
                f"INSERT INTO {SCHEMA}.definition_versions VALUES "
                "('process', 'p', 1, :text, 'h', 'w', now(), '', '', '')"
            ),
            {"text": definition},
        )
        connection.execute(
            text(
                f"INSERT INTO {SCHEMA}.reruns VALUES "
                "('p', 'c', now(), 'rerun', '[]', 1, 0, now(), false, false, '', '', :properties)"
            ),
            {"properties": '{"api_token": "hunter2", "factor": "3"}'},
        )
    upgrade(engine)
    with engine.connect() as connection:
        recorded = connection.execute(text(f"SELECT text, text_hash FROM {SCHEMA}.definition_versions")).one()
        asked = connection.execute(text(f"SELECT properties FROM {SCHEMA}.reruns")).scalars().one()
    assert recorded.text == masked(definition)
    assert recorded.text_hash == sha256(recorded.text.encode()).hexdigest()
    assert asked == {"api_token": "*****", "factor": "3"}
