"""What is wrong on purpose is found by the doctor, with the sentence that says what to do; all parts are real."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest
import sqlalchemy
import yaml
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from falcon_assets.compute.spark.capture.listener_jar import ListenerJar
from falcon_assets.doctor import all_checks, stores
from falcon_assets.errors import UnreachableError
from falcon_assets.history.database import newest_revision
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.embedded_server import EmbeddedServer
from falcon_assets.history.platform.instance_storage import FalconStorage
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.tables.table_store import open_catalog
from tests.builders import VALIDITY, cluster_yaml, make_cluster, make_feed, make_process
from tests.doctor.conftest import Installed
from tests.pooler import transaction_pooler
from tests.processes import free_port
from tests.receivers import lineage_collector
from tests.registries import iceberg
from tests.s3_server import ENVIRON, SECRET, lake
from tests.spark_servers import connect_server

PASSWORD = "hunter2"


def test_a_healthy_installation_is_ok_throughout(installed: Installed) -> None:
    found = installed.found()
    assert [one for one in found if one[1] != "ok" or one[3]] == []
    assert {check for check, *_ in found} == {
        *(
            "python",
            "java",
            "spark",
            "capture",
            "encoding",
            "limits",
            "variables",
            "definitions",
            "secrets",
            "queues",
            "receivers",
            "messaging",
            "datasources",
            "memory",
            "workers",
            "instance",
            "home",
            "space",
        ),
        *(
            "database",
            "migrations",
            "clock",
            "timelines",
            "stores",
            "registries",
            "daemon",
            "sensors",
            "queue",
            "runs",
            "webserver",
        ),
        "connectors",
        "jobs",
        "openlineage",
    }


def misspelt(it: Installed) -> None:
    it.set(FALCON_DATABSE_URL="x")


def superfluous(it: Installed) -> None:
    it.set(FALCON_THREADS="8")


def bad_setting(it: Installed) -> None:
    it.set(FALCON_CLOCK="soon")


def no_java(it: Installed) -> None:
    it.set(PATH=str(it.settings.home), JAVA_HOME="")


def other_spark(it: Installed) -> None:
    it.set(SPARK_HOME="/opt/spark")


def silent_master(it: Installed) -> None:
    write = {"endpoint": "data/primary"}
    it.cluster(interfaces={"write": write, "execute": {"endpoint": f"spark://127.0.0.1:{free_port()}"}})


def silent_executors(it: Installed) -> None:
    executors = [{"name": "east", "endpoint": f"spark://127.0.0.1:{free_port()}"}]
    it.cluster(interfaces={"write": {"endpoint": "data/primary"}}, executors=executors)


def broken_definitions(it: Installed) -> None:
    it.define("kind: cluster\nname: primary\n")


def no_definitions(it: Installed) -> None:
    it.set(FALCON_ENTITY_DEFS="/nowhere")


def unset_secret(it: Installed) -> None:
    it.monkeypatch.delenv("LAKE_KEY", raising=False)
    it.set(LAKE_SECRET="")
    it.lake("http://127.0.0.1:1")


def listener_that_does_not_compile(it: Installed) -> None:
    jar = ListenerJar(it.settings.home / "other")
    jar.path.parent.mkdir(parents=True, exist_ok=True)
    jar.log.write_text("Scala's compiler failed: no scala-library\nand more\n")
    it.set(FALCON_HOME=str(it.settings.home / "other"))


def huge_driver(it: Installed) -> None:
    it.cluster(properties={"spark.driver.memory": "900t"})


def no_such_interpreter(it: Installed) -> None:
    it.set(PYSPARK_PYTHON="/opt/nowhere/python3")


def receiver_without_service(it: Installed) -> None:
    it.set(FALCON_NOTIFICATION_TO="TEAM", TEAM=f"carrier-pigeon://{PASSWORD}@roof")


def without_dagster_yaml(it: Installed) -> None:
    (it.settings.home / "empty").mkdir(exist_ok=True)
    it.set(DAGSTER_HOME=str(it.settings.home / "empty"))


def set_up(text: str) -> Callable[[Installed], None]:
    """Dagster is set up so."""

    def plant(it: Installed) -> None:
        (it.settings.home / "dagster.yaml").write_text(text)
        it.set(DAGSTER_HOME=str(it.settings.home))

    return plant


def home_below_a_file(it: Installed) -> None:
    (it.settings.home / "file").touch()
    it.set(FALCON_HOME=str(it.settings.home / "file" / "home"))


def nobody_listens(it: Installed) -> None:
    it.set(FALCON_DATABASE_URL=f"postgresql://falcon:{PASSWORD}@127.0.0.1:{free_port()}/falcon")


def no_such_database(it: Installed) -> None:
    it.set(FALCON_DATABASE_URL=it.engine.url.set(database="none").render_as_string(hide_password=False))


def embedded_of_another_version(it: Installed) -> None:
    home = it.settings.home / "old"
    (home / "postgres").mkdir(parents=True, exist_ok=True)
    (home / "postgres" / "PG_VERSION").write_text("9\n")
    it.set(FALCON_HOME=str(home))
    it.monkeypatch.delenv("FALCON_DATABASE_URL")


def one_migration_behind(it: Installed) -> None:
    it.execute("UPDATE falcon.alembic_version SET version_num = '0028'")


def newer_ledger(it: Installed) -> None:
    it.execute("UPDATE falcon.alembic_version SET version_num = '9999'")


def old_dagster(it: Installed) -> None:
    it.execute("UPDATE alembic_version SET version_num = '16e3115a602a'")


def clock_of_another(it: Installed) -> None:
    it.execute("INSERT INTO falcon.clock (\"only\", tag) VALUES (true, '2013-01-03T06:00:00Z')")


def clock_went_back(it: Installed) -> None:
    it.instance.report_runless_asset_event(dg.AssetMaterialization("a"))
    it.now -= timedelta(days=1)


def clock_stands_still(it: Installed) -> None:
    it.set(FALCON_CLOCK="2013-01-03T06:00Z")


def a_file_in_place_of_the_store(it: Installed) -> None:
    (it.settings.home / "taken").touch()
    it.cluster(interfaces={"write": {"endpoint": "taken"}, "execute": {"endpoint": "local[1]"}})


def a_file_in_place_of_staging(it: Installed) -> None:
    (it.settings.home / "data" / "half").mkdir(parents=True, exist_ok=True)
    (it.settings.home / "data" / "half" / ".falcon").touch()
    it.cluster(interfaces={"write": {"endpoint": "data/half"}, "execute": {"endpoint": "local[1]"}})


def missing_mount(it: Installed) -> None:
    it.cluster(interfaces={"write": {"endpoint": "file:///mnt/missing/lake"}, "execute": {"endpoint": "local[1]"}})


def unreachable_s3(it: Installed) -> None:
    it.set(LAKE_KEY="key", LAKE_SECRET=SECRET)
    it.lake(f"http://127.0.0.1:{free_port()}")


class _Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        said = b"<Error><Code>InvalidAccessKeyId</Code><Message>unknown</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    do_HEAD = do_PUT = do_GET

    def log_message(self, *told: object) -> None:
        pass


def refusing_s3(it: Installed) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)  # until the tests end
    threading.Thread(target=server.serve_forever, daemon=True).start()
    it.set(LAKE_KEY="key", LAKE_SECRET=SECRET)
    it.lake(f"http://127.0.0.1:{server.server_port}")


def dead_daemon(it: Installed) -> None:
    it.beat(3 * 3600 + 1)


def dead_part(it: Installed) -> None:
    it.beat(1)
    it.execute(
        "UPDATE daemon_heartbeats SET timestamp = timestamp - interval '2 hours' "
        "WHERE daemon_type = 'QUEUED_RUN_COORDINATOR'"
    )


def no_daemon(it: Installed) -> None:
    it.instance.wipe_daemon_heartbeats()


def stopped_sensor(it: Installed) -> None:
    it.ticking(primary__collector={"stopped": True})


def failing_sensor(it: Installed) -> None:
    it.ticking(default__coordinator={"error": f"cannot open postgresql://a:{PASSWORD}@b/c"})


def late_sensor(it: Installed) -> None:
    it.ticking(default__coordinator={"ago": 1200})


def sensor_that_never_ticked(it: Installed) -> None:
    it.execute("DELETE FROM instigators WHERE selector_id <> ''")
    it.execute("DELETE FROM jobs")


def silent_webserver(it: Installed) -> None:
    it.set(FALCON_WEBSERVER_URL="http://127.0.0.1:9")


def silent_collector(it: Installed) -> None:
    it.set(FALCON_OPENLINEAGE_URL="http://127.0.0.1:9/", FALCON_OPENLINEAGE_API_KEY=SECRET)


Said = tuple[str, str, str, str]
PLANTED: list[tuple[Callable[[Installed], None], str, Said]] = [
    (misspelt, "variables", ("variables", "problem", "the environment variable FALCON_DATABSE_URL is not read",
        "write FALCON_DATABASE_URL, or unset FALCON_DATABSE_URL")),
    (superfluous, "variables", ("variables", "warning", "the environment variable FALCON_THREADS is not read",
        "unset FALCON_THREADS")),
    (bad_setting, "clock", ("settings", "problem", "FALCON_CLOCK: 'soon' is not a clock: .*", ".*")),
    (no_java, "java", ("java", "problem",
        r"Spark needs Java 17 or newer and none was found \(JAVA_HOME is not set\)", "install Java 17 or newer, .*")),
    (other_spark, "spark", ("spark", "warning", r"SPARK_HOME is /opt/spark, which is not the Spark of PySpark .*",
        "unset SPARK_HOME")),
    (silent_master, "spark", ("spark", "problem",
        r"cluster 'primary': no Spark master answers at spark://127.0.0.1:\d+ \(.*Connection refused\)",
        "start it, or fix interfaces.execute.endpoint")),
    (silent_executors, "executors", ("executors", "problem",
        r"executor 'east' of cluster 'primary': no Spark master answers at spark://127.0.0.1:\d+ \(.*refused\)",
        "start it, or fix its endpoint: others do its work meanwhile")),
    (broken_definitions, "definitions", ("definitions", "problem", "1 problem in the entity definitions",
        "falcon validate lists them")),
    (no_definitions, "definitions", ("definitions", "warning", "there is no folder /nowhere: .*",
        "write some, or set FALCON_ENTITY_DEFS")),
    (unset_secret, "secrets", ("secrets", "problem",
        "the environment variable LAKE_KEY is not set, and cluster 'lake': storage_options.key needs it",
        "set LAKE_KEY here and wherever Dagster runs")),
    (unset_secret, "stores", ("stores", "problem",
        "cluster 'lake': storage option 'key' needs the environment variable LAKE_KEY, which is not set",
        "set it here and wherever Dagster runs")),
    (listener_that_does_not_compile, "capture", ("capture", "warning",
        "what workflows read and write is not captured: Scala's compiler failed: no scala-library",
        r"fix that: the next session compiles it again; the compiler's output is in /.*/spark/capture-.*\.log")),
    (huge_driver, "memory", ("memory", "problem",
        "cluster 'primary': spark.driver.memory is 900t, and this machine has .* GiB: the driver is killed, .*",
        "write less than .* GiB")),
    (no_such_interpreter, "workers", ("workers", "problem",
        "PYSPARK_PYTHON is /opt/nowhere/python3, which is not a program here: every function in Python fails",
        "leave PYSPARK_PYTHON out to use this Python, or name one that exists")),
    (receiver_without_service, "receivers", ("receivers", "problem",
        r"TEAM does not hold one URL that apprise knows \(FALCON_NOTIFICATION_TO names it\): it gets no "
        r"notifications",
        "fix TEAM here and wherever Dagster runs, .*")),
    (without_dagster_yaml, "instance", ("instance", "problem",
        "there is no dagster.yaml in DAGSTER_HOME /.*/empty: Dagster keeps its history in SQLite there",
        "copy the one of falcon-assets there, or name its folder in DAGSTER_HOME")),
    (set_up("storage: {sqlite: {base_dir: x}}"), "instance", ("instance", "problem",
        "/.*/dagster.yaml: Dagster keeps its history in SQLite, and the ledger reads PostgreSQL",
        "write storage: {custom: .*FalconStorage.*")),
    (set_up("runlauncher: {}"), "instance", ("instance", "problem",
        '/.*/dagster.yaml: Received unexpected config entry "runlauncher" at the root', "fix that: .*")),
    (home_below_a_file, "home", ("home", "problem", "FALCON_HOME .*/file/home cannot be written: Not a directory",
        "fix that, or set FALCON_HOME")),
    (nobody_listens, "database", ("database", "problem",
        r"the database postgresql\+psycopg2://falcon:\*\*\*@127.0.0.1:\d+/falcon cannot be reached: .*refused",
        "start PostgreSQL there, or fix host and port in FALCON_DATABASE_URL")),
    (no_such_database, "database", ("database", "problem", '.* cannot be reached: .*database "none" does not exist',
        r"create the database \(createdb\), or fix FALCON_DATABASE_URL")),
    (embedded_of_another_version, "database", ("database", "problem",
        "the embedded PostgreSQL in .* does not start: its data are those of PostgreSQL 9, .*",
        "read its log in FALCON_HOME/postgres/log, or name another server in FALCON_DATABASE_URL")),
    (nobody_listens, "daemon", ("daemon", "warning", "not checked: Dagster's history cannot be read",
        "fix that first")),
    (one_migration_behind, "migrations", ("migrations", "warning",
        "the tables of the ledger are those of revision 0028, this version needs 0.*",
        "run falcon ledger status, which migrates them, .*")),
    (newer_ledger, "migrations", ("migrations", "problem",
        "the tables of the ledger are of revision 9999, and this version of falcon-assets knows only .*",
        "install the version of falcon-assets that made them, or a newer one")),
    (old_dagster, "migrations", ("migrations", "problem",
        "Dagster's tables are at revision 16e3115a602a, the installed Dagster needs [0-9a-f]+",
        "stop Dagster, then: dagster instance migrate")),
    (clock_of_another, "clock", ("clock", "problem", "the database uses another clock .*",
        "set FALCON_CLOCK=2013-01-03T06:00Z, or keep another history .*")),
    (clock_went_back, "clock", ("clock", "problem",
        "the clock of this machine was set back: the newest event was written .* from now .*",
        "set the clock by NTP, .*")),
    (clock_stands_still, "clock", ("clock", "warning",
        "the falcon clock stands still at 2013-01-03T06:00Z: nothing new becomes due", "leave FALCON_CLOCK out")),
    (a_file_in_place_of_the_store, "stores", ("stores", "problem",
        "cluster 'primary': its write endpoint: there is no folder .*/taken", "mount it, or make that folder")),
    (a_file_in_place_of_staging, "stores", ("stores", "problem",
        "cluster 'primary': cannot .*something that is not a folder is where a folder is needed.*", ".*")),
    (missing_mount, "stores", ("stores", "problem",
        "cluster 'primary': its write endpoint: there is no folder /mnt/missing/lake",
        "mount it, or make that folder")),
    (unreachable_s3, "stores", ("stores", "problem", "cluster 'lake': .*", "check its endpoint, .*")),
    (refusing_s3, "stores", ("stores", "problem",
        "cluster 'lake': its write endpoint refuses access: cannot .*: the store refuses access with these credentials",
        "check them in storage_options .*")),
    (dead_daemon, "daemon", ("daemon", "problem", "Dagster's daemon is not alive, last seen 3 hours ago: .*SENSOR.*",
        "start it: dagster-daemon run, or dagster dev")),
    (dead_part, "daemon", ("daemon", "problem",
        "Dagster's daemon is not alive, last seen 2 hours ago: QUEUED_RUN_COORDINATOR",
        "start it: dagster-daemon run, or dagster dev")),
    (no_daemon, "daemon", ("daemon", "warning", "Dagster's daemon has never run here: nothing runs by itself",
        "start it: dagster-daemon run, or dagster dev")),
    (stopped_sensor, "sensors", ("sensors", "problem", "the sensor primary__collector is stopped",
        "dagster sensor start primary__collector")),
    (failing_sensor, "sensors", ("sensors", "problem",
        r"the last tick of the sensor default__coordinator failed: cannot open postgresql://a:\*\*\*@b/c",
        "fix that; the next tick tries again")),
    (late_sensor, "sensors", ("sensors", "warning", "the sensor default__coordinator has not ticked for 20 minutes",
        "look again in a minute .*")),
    (sensor_that_never_ticked, "sensors", ("sensors", "warning",
        "primary__collector, default__coordinator never ticked", "reload the code location .*")),
    (silent_webserver, "webserver", ("webserver", "warning", "http://127.0.0.1:9 does not answer .*",
        "start dagster dev or dagster-webserver, or set FALCON_WEBSERVER_URL")),
    (silent_collector, "openlineage", ("openlineage", "warning",
        r"http://127.0.0.1:9/api/v1/lineage does not answer \(ConnectionError\): lineage waits", "start it, .*")),
]  # fmt: skip


@pytest.fixture
def restored(installed: Installed) -> Iterator[Installed]:
    """The installation; what is planted in its database is taken out again."""
    with installed.engine.connect() as connection:
        of_dagster = connection.execute(sqlalchemy.text("SELECT version_num FROM alembic_version")).scalar_one()
    yield installed
    installed.execute("UPDATE falcon.alembic_version SET version_num = :head", head=newest_revision())
    installed.execute("UPDATE alembic_version SET version_num = :head", head=of_dagster)
    installed.execute("DELETE FROM falcon.clock")


@pytest.mark.parametrize(
    ("plant", "check", "expected"),
    PLANTED,
    ids=[f"{plant.__name__}-{check}-{number}" for number, (plant, check, _) in enumerate(PLANTED)],
)
def test_it_is_found(restored: Installed, plant: Callable[[Installed], None], check: str, expected: Said) -> None:
    plant(restored)
    found = restored.ill(check)
    assert any(all(map(re.fullmatch, expected, one)) for one in found), found
    assert not re.search(f"{PASSWORD}|{re.escape(SECRET)}", str(restored.found(check)))


def test_everything_dead_at_once_is_said_in_bounded_time(restored: Installed) -> None:
    for plant in (nobody_listens, no_java, unreachable_s3, silent_webserver, misspelt):
        plant(restored)
    found = restored.ill()
    assert {"java", "variables", "database", "migrations", "stores", "daemon", "sensors", "queue", "runs"} <= {
        check for check, *_ in found
    }
    assert PASSWORD not in str(found)
    assert SECRET not in str(found)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("check", "module", "text"),
    [
        ("stores", stores, "cluster 'lake': its write endpoint does not answer within 1 s"),
        ("database", all_checks, "no answer within 1 s"),
    ],
)
def test_what_never_answers_is_not_waited_for(restored: Installed, check: str, module: ModuleType, text: str) -> None:
    restored.monkeypatch.setattr(module, "ANSWER_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
        port = silent.getsockname()[1]
        restored.lake(f"http://127.0.0.1:{port}")
        restored.set(**ENVIRON, FALCON_DATABASE_URL=f"postgresql://falcon:{PASSWORD}@127.0.0.1:{port}/a")
        ((_, status, said, _),) = restored.ill(check)
    assert (status, said) == ("problem", text)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A PostgreSQL of this module, with Dagster's tables, which asks the user guest for a password."""
    server = EmbeddedServer(tmp_path_factory.mktemp("own") / "postgres", None)
    server.start()
    engine = sqlalchemy.create_engine(server.url(), isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    FalconStorage(server.url()).dispose()
    access = server.pgdata / "pg_hba.conf"
    access.write_text(f"local all guest scram-sha-256\n{access.read_text()}")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("CREATE ROLE guest LOGIN PASSWORD 'right'"))
        connection.execute(sqlalchemy.text("SELECT pg_reload_conf()"))
    yield server
    with suppress(Exception):
        server.cleanup()


def test_a_wrong_password(installed: Installed, own_server: EmbeddedServer) -> None:
    told = sqlalchemy.make_url(own_server.url()).set(username="guest", password=PASSWORD)
    told = told.difference_update_query(["requirepeer"])
    installed.set(FALCON_DATABASE_URL=told.render_as_string(hide_password=False))
    ((check, status, text, fix),) = installed.found("database")
    assert (check, status, fix) == ("database", "problem", "fix user and password in FALCON_DATABASE_URL")
    assert 'password authentication failed for user "guest"' in text
    assert PASSWORD not in text


def test_a_wrong_password_of_an_iceberg_catalog(monkeypatch: pytest.MonkeyPatch, own_server: EmbeddedServer) -> None:
    url = sqlalchemy.make_url(own_server.url()).set(username="guest").difference_update_query(["requirepeer"])
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with pytest.raises(UnreachableError) as raised:
        open_catalog("primary", f"iceberg+{url}", "file:///none").layout("default", "flights")
    text = str(raised.value)
    assert "refused the login (OperationalError: " in text and "does not answer" not in text
    assert "check the user in interfaces.registry.endpoint, and its password in PGPASSWORD" in text
    assert PASSWORD not in text


def test_a_pooler_that_shares_sessions_out(installed: Installed, own_server: EmbeddedServer) -> None:
    with transaction_pooler(own_server.url()) as url:
        installed.set(FALCON_DATABASE_URL=url)
        ((_, status, text, fix),) = installed.found("database")
    assert status == "problem"
    assert text.endswith(
        "is behind a pooler that gives each statement or transaction another session: "
        "the locks of runs and coordinators are lost"
    )
    assert "pool_mode = session" in fix


def test_a_server_that_is_stopped(installed: Installed, own_server: EmbeddedServer) -> None:
    """The last of this server."""
    url = own_server.url()
    own_server._stop()
    installed.set(FALCON_DATABASE_URL=url)
    ((_, status, text, fix),) = installed.found("database")
    assert (status, fix) == ("problem", "start PostgreSQL there, or fix host and port in FALCON_DATABASE_URL")
    assert "cannot be reached" in text


def run_of(it: Installed, status: dg.DagsterRunStatus) -> dg.DagsterRun:
    """A run of the process, which nobody executes."""
    tags = {run_tags.PROCESS: "both", run_tags.CLUSTER: "primary"}
    repository = RemoteRepositoryOrigin(GrpcServerCodeLocationOrigin("localhost", 4000), "__repository__")
    origin = RemoteJobOrigin(repository, "primary__both_job")
    run = dg.DagsterRun(job_name="primary__both_job", status=status, tags=tags, remote_job_origin=origin)
    it.instance.run_storage.add_run(run)
    it.now = datetime.now(UTC)
    return run


def test_a_run_that_lost_its_worker(installed: Installed) -> None:
    run = run_of(installed, dg.DagsterRunStatus.STARTED)
    assert installed.ill("runs") == []  # it may take its lock yet
    installed.now += timedelta(minutes=10, seconds=30)
    ((_, status, text, fix),) = installed.ill("runs")
    assert status == "problem"
    assert text == (
        f"the run {run.run_id} of primary__both_job has lost its worker, and nothing has happened to it for 10 minutes"
    )
    assert fix.startswith("its coordinator ends it; if Dagster's daemon does not run")


def test_runs_that_are_queued_for_long(installed: Installed) -> None:
    run_of(installed, dg.DagsterRunStatus.QUEUED)
    queued = installed.now
    assert installed.ill("queue") == []
    for _ in range(2):
        run_of(installed, dg.DagsterRunStatus.STARTED)
    installed.now = queued + timedelta(hours=1)
    installed.beat()
    ((_, status, text, fix),) = installed.ill("queue")
    assert (status, text) == ("warning", "1 run is queued, the first for 1 hour, because 2 of 2 runs are at work")
    assert "max_concurrent_runs" in fix
    installed.beat(1, "SENSOR", "SCHEDULER")
    ((_, status, text, _),) = installed.ill("queue")
    assert (status, text.endswith("because the part of Dagster's daemon that starts them is not alive")) == (
        "problem",
        True,
    )


def test_nothing_is_left_in_a_store(installed: Installed) -> None:
    root = installed.settings.home / "data" / "primary"
    assert (installed.ill("stores"), root.exists()) == ([], False)
    root.mkdir(parents=True)
    assert (installed.ill("stores"), list(root.iterdir())) == ([], [])


def test_an_s3_store_that_answers(installed: Installed, s3: str, tmp_path: Path) -> None:
    installed.set(**ENVIRON)
    installed.lake(s3)
    ((_, status, text, _),) = installed.ill("stores")
    assert (status, text) == ("problem", "cluster 'lake': its write endpoint: there is no s3://lake/data")
    fs = ClusterStore(make_cluster(**lake(s3)), tmp_path, ENVIRON).fs
    fs.mkdir("lake")
    said = "cluster 'lake': its write endpoint, lake/data, can be read and written"
    assert installed.found("stores") == [("stores", "ok", said, "")]
    assert fs.find("lake") == []
    none = "no process reads or writes an object store"
    assert installed.found("connectors") == [("connectors", "ok", none, "")]


@pytest.mark.soak
def test_how_spark_gets_at_object_stores(installed: Installed, tmp_path: Path) -> None:
    installed.set(**ENVIRON)
    on = [{"name": "lake", "validity": VALIDITY}]
    feeds = [
        make_feed(clusters=on),
        make_feed(name="delays", clusters=on, locations={"data": "/delays/${YEAR}${MONTH}${DAY}${HOUR}"}),
    ]
    process = make_process(clusters=on, workflow={"engine": "spark-sql", "path": "all.sql"})
    (installed.settings.entity_defs / "all.sql").write_text("SELECT 1")

    def said(execute: str) -> tuple[str, str]:
        installed.define(
            "---\n".join(
                [
                    cluster_yaml(**lake("http://127.0.0.1:1", execute=execute)),
                    *(yaml.safe_dump(one.model_dump(mode="json", exclude_unset=True)) for one in (*feeds, process)),
                ]
            )
        )
        assert installed.ill("definitions") == []
        ((_, status, text, _),) = installed.found("connectors")
        return status, text

    staged = installed.settings.home / "working/lake/staged"
    copies = f"cluster 'lake': Spark has no connector for s3://lake, and gets copies of it, in {staged}"
    assert said("local[1]") == ("ok", copies)
    status, text = said("sc://127.0.0.1:9")
    assert status == "warning" and text.startswith(
        "how Spark accesses object stores cannot be checked: cluster 'lake': "
    )
    with connect_server(tmp_path, "bare") as server:
        refused = "cluster 'lake': Spark has no connector for s3://lake, and shares no folder with this machine"
        assert said(f"{server.interfaces.execute.endpoint}/;use_ssl=false") == ("problem", refused)


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (405, "ok", "answers"),
        (403, "warning", r"refuses access \(403\): lineage waits"),
        (502, "warning", "answers 502: lineage waits"),
        (302, "warning", "redirects elsewhere: lineage waits"),
    ],
)
def test_who_collects_lineage(installed: Installed, answer: int, status: str, said: str) -> None:
    with lineage_collector() as collector:
        collector.answer = answer
        installed.set(FALCON_OPENLINEAGE_URL=f"http://127.0.0.1:{collector.port}")
        ((_, found, text, _),) = installed.found("openlineage")
    assert found == status
    assert re.fullmatch(f"http://127.0.0.1:[0-9]+/api/v1/lineage {said}", text)


def test_registries_of_tables_are_asked(installed: Installed, database: str) -> None:
    none = [("registries", "ok", "no feed lies in a table", "")]
    assert installed.found("registries") == none

    def with_table(endpoint: str) -> None:
        interfaces = {"write": {"endpoint": "data/primary"}, "execute": {"endpoint": "local[2]"}}
        uri = "catalog:default:counts#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"
        feed = make_feed(availability_flag=None, locations=None, table={"uri": uri}, format="parquet")
        cluster = cluster_yaml(interfaces={**interfaces, "registry": {"endpoint": endpoint}})
        installed.define(f"{cluster}---\n{yaml.safe_dump(feed.model_dump(mode='json', exclude_unset=True))}")

    with socket.socket() as nobody:  # it has the port, and does not listen
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"thrift://127.0.0.1:{nobody.getsockname()[1]}"
        with_table(endpoint)
        ((_, status, text, fix),) = installed.ill("registries")
    assert (status, text) == ("problem", f"cluster 'primary': {endpoint} does not answer: Connection refused")
    assert fix.startswith("start it, or check interfaces.registry of the cluster")
    with_table(iceberg(database))
    ((_, status, text, _),) = installed.found("registries")
    assert (status, text.endswith(" answers")) == ("ok", True)
    assert text.startswith("cluster 'primary': its registry iceberg+postgresql://") and ":***" not in text
