"""What a shell says, and sessions do not go by."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from falcon_assets.compute.spark import connect_server as server
from falcon_assets.compute.spark.endpoints.connect_endpoint import with_token
from falcon_assets.compute.spark.jvm import in_utc, jvm_starts, utf8_locale
from falcon_assets.compute.spark.server_process import ServerFiles
from tests.processes import CHECKOUT, environ_with, free_port

PROGRAM = """
import os, sys
from pathlib import Path
from tests.spark.sandbox import Sandbox, cluster_on
from falcon_assets.compute.spark.sessions import stop_sessions
from tests.spark.test_input_files import copied, planted

box = Sandbox(Path(sys.argv[1]), cluster_on("local[1]"))
planted(box, "in/\u00fc.json", "in/sub/a.json")
print(copied(box, "in"), os.environ.get("LC_ALL"))
stop_sessions()
"""
ELSEWHERE = {
    "SPARK_REMOTE": "sc://127.0.0.1:9",
    "SPARK_API_MODE": "connect",
    "SPARK_CONNECT_MODE_ENABLED": "1",
    "SPARK_LOCAL_REMOTE": "1",
}
"""Has PySpark go to a Connect server, whatever master it is given."""


@pytest.mark.soak
def test_a_session_is_on_its_cluster_and_finds_its_files_whatever_the_shell_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=CHECKOUT,
        env=environ_with(LC_ALL="C", **ELSEWHERE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[(0,), (1,)] C\n", done.stderr


def test_this_process_keeps_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in ("C", None):
        if before is None:
            monkeypatch.delenv("LC_ALL", raising=False)
        else:
            monkeypatch.setenv("LC_ALL", before)
        with jvm_starts(lambda environ: {}):
            assert os.environ["LC_ALL"] == utf8_locale()["LC_ALL"]
        assert os.environ.get("LC_ALL") == before


def test_blocks_in_utc_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        first, second = in_utc(), in_utc()
        first.__enter__()
        assert (os.environ["TZ"], time.timezone) == ("UTC", 0)
        second.__enter__()
        with jvm_starts(lambda environ: {}):
            first.__exit__(None, None, None)
        assert (os.environ["TZ"], time.timezone) == ("UTC", 0)
        second.__exit__(None, None, None)
        assert (os.environ["TZ"], time.timezone) == ("Asia/Kolkata", -19800)
    finally:
        monkeypatch.undo()
        time.tzset()


ZONES = '''
import sys, time
from pathlib import Path
from tests.spark.sandbox import Sandbox, cluster_on
from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.spark.sessions import stop_sessions

box = Sandbox(Path(sys.argv[1]), cluster_on(sys.argv[2]))
box.file("in/a.json", '{"t":"2013-01-01T20:15:00Z"}')
data = box.input("events", "in", schema="t timestamp")
box.file("w.py", """
import time
from datetime import datetime
from pyspark.sql.functions import udf

def run(spark, inputs, instance):
    first = inputs["events"].first().t
    here = udf(lambda t: f"{t} {time.tzname[0]}")
    row = (str(first), time.tzname[0], datetime(2013, 1, 1, 20, 15))
    frame = spark.createDataFrame([row], "f string, z string, t timestamp")
    jvm = "reflect('java.time.ZoneId', 'systemDefault')"
    return frame.select("f", "z", here("t").alias("w")).selectExpr("*", f"{jvm} AS j")
""")
box.file("app.py", """
import sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
first = spark.read.schema("t timestamp").json(sys.argv[1]).first().t
spark.createDataFrame([(str(first), time.tzname[0])], "f string, z string").write.parquet(sys.argv[2])
""")
run_workflow(box.task(box.workflow(engine="pyspark", path="w.py"), inputs=(data,)))
print([tuple(row) for row in box.rows()], time.tzname[0])
out = box.output("copy")
app = box.workflow(engine="spark-submit", path="app.py", args=["${events}", "${copy}"])
run_workflow(box.task(app, inputs=(data,), outputs=(out,)))
print([tuple(row) for row in box.rows("copy")])
stop_sessions()
'''


@pytest.mark.soak
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
@pytest.mark.parametrize("endpoint", ["local[1]", "connect"])
def test_workflows_are_in_utc_whatever_the_zone_of_the_machine(tmp_path: Path, zone: str, endpoint: str) -> None:
    environ = environ_with(TZ=zone)
    home = tmp_path / "home"
    if endpoint == "connect":
        port = free_port()
        server.start(home, port, environ)
        endpoint = with_token(f"sc://127.0.0.1:{port}", ServerFiles(home).token())
    try:
        done = subprocess.run(
            [sys.executable, "-c", ZONES, str(tmp_path / "box"), endpoint],
            cwd=CHECKOUT,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.stop(home)
    outside = {"Asia/Kolkata": "IST", "America/New_York": "EST"}[zone]
    assert done.stdout == (
        "[('2013-01-01 20:15:00', 'UTC', '2013-01-01 20:15:00 UTC', 'UTC')] " + outside + "\n"
        "[('2013-01-01 20:15:00', 'UTC')]\n"
    ), done.stderr
