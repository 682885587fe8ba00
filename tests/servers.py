"""A real PostgreSQL for every test that needs one: the embedded server, or the one of FALCON_DATABASE_URL."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy
import yaml
from filelock import FileLock

from falcon_assets.history.dagster_internals.partitions import partitions_exist_by
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.settings import Settings, load_settings
from falcon_assets.shared_clock import home_clock
from tests.jvm import archive_made, quicken
from tests.listener import share_listener
from tests.processes import CHECKOUT

# One set of servers for all that asks for them.
pytest_plugins = [
    *("tests.spark_servers", "tests.registries", "tests.hdfs_server", "tests.cloud_servers", "tests.s3_server"),
    *("tests.mariadb_server", "tests.operations.opening", "tests.world", "tests.features.transfers.worlds"),
]
GIVEN_DATABASE = os.environ.get("FALCON_DATABASE_URL")


def pytest_configure(config: pytest.Config) -> None:
    """Sets up the Java and the Python of everything that the tests start."""
    quicken(os.environ)
    # In a new checkout each of many programs would compile this package again: a sixth of what its start takes.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False  # without workers, this process itself would compile all tests each time
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
        if GIVEN_DATABASE:
            return database_url(load_settings(environ | {"FALCON_DATABASE_URL": GIVEN_DATABASE}))
        url = database_url(load_settings(environ))
    with _server(url) as connection:
        # Nothing of it outlives a crash of the machine: no waiting for the disk.
        for setting in ("fsync = off", "full_page_writes = off", "synchronous_commit = off"):
            connection.execute(sqlalchemy.text(f"ALTER SYSTEM SET {setting}"))
        connection.execute(sqlalchemy.text("SELECT pg_reload_conf()"))
    return url


@pytest.fixture(scope="session")
def template(postgres: str) -> Iterator[str]:
    """The name of a database with Dagster's tables and nothing in them: copying it is faster than making them."""
    # Here, so that what a new Dagster breaks fails the tests that say so, and not all of them.
    from falcon_assets.history.platform.instance_storage import FalconStorage

    with new_database(postgres, "template0") as name:
        storage = FalconStorage(url_of(postgres, name))
        storage.dispose()
        yield name


@pytest.fixture(scope="module")
def database(postgres: str, template: str) -> Iterator[str]:
    """The URL of a database for the tests of one module: nothing happened there yet."""
    with new_database(postgres, template) as name:
        yield url_of(postgres, name)


@contextmanager
def new_database(server: str, template: str) -> Iterator[str]:
    name = f"falcon_test_{uuid.uuid4().hex}"
    with _server(server) as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name} TEMPLATE {template}"))
    yield name
    with _server(server) as connection:
        connection.execute(sqlalchemy.text(f"DROP DATABASE {name} WITH (FORCE)"))


@contextmanager
def _server(url: str) -> Iterator[sqlalchemy.Connection]:
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    try:
        connection = engine.connect()
    except sqlalchemy.exc.OperationalError as error:
        raise AssertionError(f"the PostgreSQL of the tests is gone; its log ends with:\n{_end_of_log(url)}") from error
    with connection:
        yield connection


def url_of(server: str, database: str) -> str:
    return sqlalchemy.make_url(server).set(database=database).render_as_string(hide_password=False)


def libpq_url(url: str) -> str:
    """The URL for psycopg2 and pg_dump: in theirs a plus is no blank."""
    plain = sqlalchemy.make_url(url).set(drivername="postgresql")
    return plain.render_as_string(hide_password=False).replace("+", "%20")


def _end_of_log(url: str) -> str:
    log = Path(str(sqlalchemy.make_url(url).query.get("host", "")), "log")  # the embedded server's socket is beside it
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log.is_file() else "it has none here"


@pytest.fixture(scope="module")
def settings(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The settings of the module's environment."""
    with settings_of(database, tmp_path_factory.mktemp("home")) as found:
        yield found


@contextmanager
def settings_of(database: str, home: Path) -> Iterator[Settings]:
    """The settings of an environment: that database, an empty home, the entities that the module writes.

    They are in the environment of the process as well, because Dagster builds our storage from there.
    """
    share_listener(home)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_DATABASE_URL", database)
        environment.setenv("FALCON_HOME", str(home))
        environment.setenv("FALCON_ENTITY_DEFS", str(home / "entity_defs"))
        for name in ("FALCON_COLO", "FALCON_CLOCK", "DAGSTER_HOME"):
            environment.delenv(name, raising=False)
        yield load_settings()


@pytest.fixture(scope="module")
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance of those settings, as `dagster.yaml` declares it."""
    with instance_of(settings) as opened:
        yield opened


@contextmanager
def instance_of(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """An instance as `dagster.yaml` declares it; its database is that of the environment.

    But for the capture of what steps print: it takes four processes a run, and programs of their own have it.
    """
    declared = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    declared["compute_logs"] = {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
    home_clock.cache_clear()  # a program that starts now would look, and others may have been at work here
    artifacts = settings.home / "dagster"
    artifacts.mkdir(parents=True, exist_ok=True)
    with dg.DagsterInstance.local_temp(str(artifacts), overrides=declared) as opened:
        yield opened
    partitions_exist_by(None)


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
