from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from falcon_assets.compute.engines.computing.program_files import logs_of_run
from falcon_assets.compute.engines.computing.programs import stop_programs
from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.spark.data.dataset import Members
from falcon_assets.errors import WorkflowError
from tests.processes import CHECKOUT
from tests.spark.sandbox import NOMINAL, Sandbox, cluster_on
from tests.spark.test_environ import ELSEWHERE
from tests.waiting import wait_until

WAITS = "import pathlib, sys, time\npathlib.Path(sys.argv[1]).write_text('here')\ntime.sleep(600)\n"


def refusal(sandbox: Sandbox, program: str, **task: Any) -> str:
    sandbox.file("app.py", program)
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(sandbox.workflow(engine="spark-submit", path="app.py"), **task))
    return str(caught.value)


def test_arguments_reach_the_program_as_they_are(sandbox: Sandbox) -> None:
    program = (
        "import json, sys, pathlib\np = pathlib.Path(sys.argv[1].removeprefix('file://'))\np.mkdir(parents=True)\n"
    )
    sandbox.file(
        "app.py", program + "(p / 'a.json').write_text('\\n'.join(json.dumps({'arg': a}) for a in sys.argv[2:]))"
    )
    args = (
        "${delays}",
        "${raw}",
        "${raw__sales-us}",
        "--day",
        "${nominalTime}",
        "$(rm -rf /); 'x'",
        "${threshold}",
        "${cluster.name}",
        "${user()}",
    )
    members = Members(("sales-eu", "sales-us"), None, True, ("sales-eu", "sales-us"))
    task = sandbox.task(
        sandbox.workflow(engine="spark-submit", path="app.py", args=args),
        inputs=(replace(sandbox.input("raw", "in/1", "in/2"), members=members),),
        outputs=(sandbox.output("delays", format="json"),),
        properties={"threshold": "15", "cluster.name": "primary"},
        user="etl",
    )
    result = run_workflow(task)
    assert (result.records, result.application_id) == ({"delays": 8}, "")
    folder = sandbox.folder.as_uri()
    assert {row[0] for row in sandbox.rows(file_format="json")} == {
        f"{folder}/in/1,{folder}/in/2", f"{folder}/in/2",
        "--day", "2013-01-01T05:00Z", "$(rm -rf /); 'x'", "15", "primary", "etl",
    }  # fmt: skip


def test_a_program_computes_on_its_cluster_whatever_the_shell_says(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)
    sandbox.file(
        "app.py",
        "import sys\nfrom pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
        "rows = [(spark.sparkContext.master,)]\n"
        "spark.createDataFrame(rows, 'master string').write.json(sys.argv[1])\n",
    )
    workflow = sandbox.workflow(engine="spark-submit", path="app.py", args=("${delays}",))
    run_workflow(sandbox.task(workflow, outputs=(sandbox.output("delays", format="json"),)))
    assert [row[0] for row in sandbox.rows(file_format="json")] == [sandbox.cluster.interfaces.execute.endpoint]


def test_a_program_without_outputs_is_done_when_it_ends_well(sandbox: Sandbox) -> None:
    sandbox.file("app.py", "import pathlib, sys\npathlib.Path(sys.argv[1]).touch()\n")
    said = sandbox.folder / "said"
    workflow = sandbox.workflow(engine="spark-submit", path="app.py", args=(str(said),))
    result = run_workflow(sandbox.task(workflow, outputs=()))
    assert (result.records, result.application_id, said.exists()) == ({}, "", True)


def test_a_failure_shows_the_end_of_the_log_without_secrets(sandbox: Sandbox) -> None:
    text = refusal(
        sandbox, "print('the key is hunter2')\nraise SystemExit(3)", properties={"db.password": "hunter2", "day": "1"}
    )
    head, *tail = text.splitlines()
    logs = logs_of_run(str(sandbox.folder / "working"), "hourly", NOMINAL, "run")
    assert [log.parent for log in logs] == [sandbox.folder / "working/spark-submit/hourly/20130101T0500"]
    assert logs_of_run(str(sandbox.folder / "working"), "hourly", NOMINAL, "another") == []
    assert head == f"{sandbox.folder}/app.py: spark-submit ended with exit code 3; its log is {logs[0]} and says:"
    assert tail == ["the key is *****"]
    assert "hunter2" not in text


def test_an_output_that_was_not_written(sandbox: Sandbox) -> None:
    text = refusal(sandbox, "print('done')")
    assert text.startswith(
        f"{sandbox.folder}/app.py: the program succeeded but did not write output 'delays' to "
        f"{sandbox.folder.as_uri()}/out/delays; its log is "
    )


def test_no_program(sandbox: Sandbox) -> None:
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(sandbox.workflow(engine="spark-submit", path="app.py")))
    assert str(caught.value) == f"{sandbox.folder}/app.py: the workflow's program cannot be read: no such file"


def test_an_unknown_variable(sandbox: Sandbox) -> None:
    sandbox.file("app.py", "")
    with pytest.raises(WorkflowError) as caught:
        run_workflow(sandbox.task(sandbox.workflow(engine="spark-submit", path="app.py", args=["${delayz}"])))
    assert str(caught.value) == (
        f"process 'hourly': args of {sandbox.folder}/app.py: '${{delayz}}': unknown variable '${{delayz}}' "
        "(did you mean 'delays'?)"
    )


def test_nobody_at_the_endpoint(tmp_path: Path) -> None:
    text = refusal(Sandbox(tmp_path, cluster_on("spark://127.0.0.1:1")), "")
    assert text == (
        "cluster 'primary': no Spark master answers at spark://127.0.0.1:1 (127.0.0.1:1: Connection refused): "
        "start it, or fix interfaces.execute.endpoint"
    )


def test_programs_can_be_stopped_from_another_thread(sandbox: Sandbox) -> None:
    sandbox.file("app.py", WAITS)
    started = sandbox.folder / "started"
    task = sandbox.task(sandbox.workflow(engine="spark-submit", path="app.py", args=[str(started)]))
    failures: list[str] = []

    def work() -> None:
        try:
            run_workflow(task)
        except WorkflowError as error:
            failures.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(started.exists)
    stop_programs()
    thread.join(60)
    assert len(failures) == 1
    assert "app.py: spark-submit ended with exit code 143; its log is " in failures[0]
    assert programs_of(started) == []


def test_an_interrupted_process_leaves_no_program_behind(sandbox: Sandbox) -> None:
    sandbox.file("app.py", WAITS)
    started = sandbox.folder / "started"
    script = f"""
from pathlib import Path
from tests.spark.test_environ import ELSEWHERE
from tests.spark.sandbox import NOMINAL, Sandbox, cluster_on
from falcon_assets.compute.engines.computing.run import run_workflow
box = Sandbox(Path({str(sandbox.folder)!r}), cluster_on("local[1]"))
run_workflow(box.task(box.workflow(engine="spark-submit", path="app.py", args=[{str(started)!r}])))
"""
    child = subprocess.Popen([sys.executable, "-c", script], cwd=CHECKOUT, stderr=subprocess.PIPE)
    wait_until(started.exists)
    os.kill(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert b"KeyboardInterrupt" in said
    assert programs_of(started) == []


def programs_of(started: Path) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if str(started) in (process.info["cmdline"] or []) and process.status() != psutil.STATUS_ZOMBIE
    ]
