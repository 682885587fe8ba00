"""A real PostgreSQL for every test that needs one: the embedded server, or the one of FALCON_DATABASE_URL."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy
from filelock import FileLock

from falcon_assets.orchestration.instance import open_instance
from falcon_assets.orchestration.postgres import database_url
from falcon_assets.settings import Settings, load_settings
from tests.jvm import archive_made, quicken

GIVEN_DATABASE = os.environ.get("FALCON_DATABASE_URL")


def pytest_configure(config: pytest.Config) -> None:
    """Sets up the Java of everything that the tests start."""
    quicken(os.environ)
    if not hasattr(config, "workerinput"):  # once, in pytest's first process
        making = ExitStack()
        making.enter_context(archive_made())
        config.add_cleanup(making.close)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of the server under test."""
    environ = {"FALCON_HOME": str(tmp_path_factory.mktemp("postgres"))}
    # As root, the first embedded server on a machine makes a system user: not twice at once.
    with FileLock(Path(tempfile.gettempdir(), "falcon-tests-postgres.lock")):
        return database_url(
            load_settings(environ | ({"FALCON_DATABASE_URL": GIVEN_DATABASE} if GIVEN_DATABASE else {}))
        )


@pytest.fixture(scope="module")
def database(postgres: str) -> Iterator[str]:
    """The URL of an empty database, for the tests of one module."""
    name = f"falcon_test_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(postgres, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    try:
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    except sqlalchemy.exc.OperationalError as error:
        raise AssertionError(
            f"the PostgreSQL of the tests is gone; its log ends with:\n{_end_of_log(postgres)}"
        ) from error
    yield sqlalchemy.make_url(postgres).set(database=name).render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"DROP DATABASE {name} WITH (FORCE)"))


def _end_of_log(url: str) -> str:
    log = Path(str(sqlalchemy.make_url(url).query.get("host", "")), "log")  # the embedded server's socket is beside it
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log.is_file() else "it has none here"


@pytest.fixture(scope="module")
def settings(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The settings of the module's environment: that database, an empty home, the entities that the module writes.

    They are in the environment of the process as well, because Dagster builds our storage from there.
    """
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_DATABASE_URL", database)
        environment.setenv("FALCON_HOME", str(home))
        environment.setenv("FALCON_ENTITY_DEFS", str(home / "entity_defs"))
        for name in ("FALCON_COLO", "FALCON_CLOCK", "DAGSTER_HOME"):
            environment.delenv(name, raising=False)
        yield load_settings()


@pytest.fixture(scope="module")
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance of those settings."""
    with open_instance(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def write_entities(settings: Settings) -> Callable[[dict[str, str]], Path]:
    """Writes files into the folder of the entity definitions, by relative path, and returns that folder."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = settings.entity_defs / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return settings.entity_defs

    return write
