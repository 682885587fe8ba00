"""What is secret stands on no command line, which every user of the machine can read, and reaches no program."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.model.secret_values import is_secret
from tests.spark.sandbox import SECRET, SECRET_KEY, Sandbox

LOOKS = """
import json, os, pathlib, sys
import psutil
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
lines = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
said = {
    "known": spark.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
    "seen": [line for line in lines if "hush" in line],
    "inherited": [name for name in ("FALCON_DATABASE_URL", "PGPASSWORD") if name in os.environ],
}
folder = pathlib.Path(sys.argv[1].removeprefix("file://"))
folder.mkdir(parents=True)
(folder / "a.json").write_text(json.dumps({"said": json.dumps(said)}))
"""


@pytest.mark.parametrize("key", [SECRET_KEY, "db.password", "spark.hadoop.fs.azure.account.key.x", "SPARK_TOKEN"])
def test_what_is_secret(key: str) -> None:
    assert is_secret(key)
    assert not is_secret("spark.sql.shuffle.partitions")


def test_a_session_has_it_and_no_command_line(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    assert context._jsc.hadoopConfiguration().get("fs.s3a.secret.key") == SECRET
    lines = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert any("java" in line for line in lines)
    assert [line for line in lines if "hush" in line] == []


def test_a_program_has_it_and_neither_a_command_line_nor_the_database(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FALCON_DATABASE_URL", "postgresql://u:hush@h/d")
    monkeypatch.setenv("PGPASSWORD", "hush")
    sandbox.file("app.py", LOOKS)
    workflow = sandbox.workflow(engine="spark-submit", path="app.py", args=("${delays}",))
    outputs = (sandbox.output("delays", format="json"),)
    run_workflow(sandbox.task(workflow, inputs=(), outputs=outputs))
    ((said,),) = sandbox.rows(file_format="json")
    assert json.loads(said) == {"known": SECRET, "seen": [], "inherited": []}
    logs = list(Path(sandbox.folder).rglob("spark-submit-*.log"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in logs} <= {0o600}
