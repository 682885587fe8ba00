"""What is secret by its name is in no failure of a workflow, whichever engine computes it."""

from __future__ import annotations

import pytest

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.errors import WorkflowError
from tests.spark.sandbox import Sandbox

SECRETS = {"jdbc.password": "hunter2hunter2", "db_password": "pw-of-the-base", "api_token": "tok", "threshold": "15"}
PYTHON = """
def run(spark, inputs, instance):
    told = instance.properties
    raise ValueError(f"{told['jdbc.password']} {told['api_token']} {told['threshold']}")
"""


@pytest.mark.parametrize(
    ("file", "engine", "text", "said"),
    [
        pytest.param("w.py", "pyspark", PYTHON, "ValueError: ***** ***** 15", id="pyspark"),
        pytest.param("w.sql", "spark-sql", "SELECT raise_error(:db_password) AS a", "*****", id="spark-sql"),
        pytest.param("w.sql", "spark-sql", "SELECT int(:db_password) AS a", "'*****'", id="spark-sql-value"),
    ],
)
def test_a_failure_has_stars(
    sandbox: Sandbox, capfd: pytest.CaptureFixture[str], file: str, engine: str, text: str, said: str
) -> None:
    sandbox.file(file, text)
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(sandbox.workflow(engine=engine, path=file), properties=SECRETS))
    assert said in str(caught.value)
    everything = f"{caught.value!r} {caught.value.__cause__!r}"
    python = capfd.readouterr().err.partition("Traceback (most recent call last)")[2]  # before it, the JVM's own log
    assert not [one for one in ("hunter2", "pw-of-the-base", "tok ") if one in everything or one in python]
