"""Workflows cannot end the process that computes them."""

from __future__ import annotations

import os
import threading

import pytest

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.engines.computing.task import exits_refused
from falcon_assets.errors import WorkflowError
from tests.spark.sandbox import Sandbox


def test_an_exit_is_an_error_while_a_workflow_is_computed() -> None:
    real = os._exit
    with exits_refused():
        with exits_refused(), pytest.raises(SystemExit, match=r"os\._exit\(0\) would end the run as well"):
            os._exit(0)
        with pytest.raises(SystemExit):
            os._exit(3)
    assert os._exit is real


def test_a_child_of_a_workflow_may_end() -> None:
    with exits_refused():
        child = os.fork()
        if not child:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("os._exit(0)", "SystemExit: os._exit(0) would end the run as well: return, or raise an error"),
        ("sys.exit(0)", "SystemExit: 0"),
        ("exit()", "SystemExit: None"),
    ],
)
def test_a_workflow_that_ends_the_process_fails(sandbox: Sandbox, body: str, said: str) -> None:
    file = sandbox.file("w.py", f"import os, sys\ndef run(spark, inputs, instance):\n    {body}\n")
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(sandbox.workflow(engine="pyspark", path="w.py")))
    assert str(caught.value) == f"{file}:3: {said}"
    assert threading.main_thread().is_alive()
