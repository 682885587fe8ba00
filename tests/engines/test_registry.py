"""A new engine is a new file: definitions, schema, validation and runs know it then."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from pyspark.find_spark_home import _find_spark_home

from falcon_assets.model.workflow import engines
from tests.processes import environ_with
from tests.s3_server import ENVIRON, KEY, SECRET, lake, s3_server

ENGINE = '''
"""The engine ``constant``: a text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from falcon_assets.model.base import NonEmpty
from falcon_assets.model.workflow import Workflow


class ConstantWorkflow(Workflow):
    """Writes what it is told."""

    kinds: ClassVar[tuple[str, ...]] = ("text",)

    engine: Literal["constant"]
    """A text."""
    text: NonEmpty
    """What is written; may hold ``${...}``."""
    after: NonEmpty | None = None
    """A file that must be there."""

    def files(self) -> dict[str, str]:
        return {} if self.after is None else {"after": self.after}

    def templates(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        yield ("text",), self.text

    def compute(self, task):
        from falcon_assets.compute.engines.computing.task import WorkflowResult
        from falcon_assets.planning.interpolate import interpolate

        text = interpolate(self.text, task.properties, task.nominal, task.timezone, task.user)
        for output in task.outputs:
            folder = Path(urlsplit(output.url).path)
            folder.mkdir(parents=True)
            (folder / "part.txt").write_text(text)
        return WorkflowResult({output.name: 1 for output in task.outputs}, "")
'''
PROGRAM = """
import sys
import falcon_assets.compute.engines
falcon_assets.compute.engines.__path__.append(sys.argv.pop(1))
from falcon_assets.surface.cli.main import main
main()
"""
ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[1]"}}
---
kind: cluster
name: backup
interfaces: {write: {endpoint: backup}, execute: {endpoint: "local[1]"}}
---
kind: feed
name: told
frequency: hours(1)
availability_flag: _SUCCESS
format: text
locations: {data: "/told/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters:
  - {name: primary, type: source, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T02:00Z}}
  - {name: backup, type: target, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T02:00Z}}
schedule: true
---
kind: process
name: tell
frequency: hours(1)
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T02:00Z}}]
outputs: [{name: told, feed: told, instance: "now(0,0)"}]
properties: {word: hello, spark.executor.memory: 1g}
workflow: {engine: constant, text: "${word} ${formatTime(instanceTime(),'HH')}"}
schedule: true
"""
SETTING = "properties: {word: hello, spark.executor.memory: 1g}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "engines").mkdir()
    (folder / "engines" / "constant.py").write_text(ENGINE)
    (folder / "entity_defs").mkdir()
    return folder


def falcon(home: Path, *command: str, **given: str) -> subprocess.CompletedProcess[str]:
    environ = environ_with(FALCON_HOME=str(home), FALCON_ENTITY_DEFS="entity_defs", **given)
    program = [sys.executable, "-c", PROGRAM, "engines", *command]
    return subprocess.run(program, env=environ, cwd=home, capture_output=True, text=True, check=False)


def test_one_file_is_one_engine() -> None:
    named = {module.stem.replace("_", "-") for module in _modules()}
    assert {str(one.model_fields["engine"].annotation) for one in engines()} == {
        f"typing.Literal['{name}']" for name in named
    }


def _modules() -> list[Path]:
    import falcon_assets.compute.engines

    return [path for path in Path(falcon_assets.compute.engines.__path__[0]).glob("*.py") if path.stem != "__init__"]


def test_the_schema_has_its_keys(home: Path) -> None:
    schema = json.loads(falcon(home, "schema", "process").stdout)
    engine = schema["properties"]["workflow"]["discriminator"]["mapping"]
    assert list(engine) == ["constant", "pyspark", "python", "spark-sql", "spark-submit"]
    assert (
        schema["$defs"]["ConstantWorkflow"]["properties"]["text"]["description"]
        == "What is written; may hold `${...}`."
    )


def test_what_is_wrong_is_said(home: Path) -> None:
    wrong = ENTITIES.replace("${word}", "${wrod}").replace("HH')}\"}", "HH')}\", after: none.txt}")
    (home / "entity_defs" / "all.yaml").write_text(wrong)
    told = falcon(home, "validate")
    assert told.returncode == 1
    for said in (
        "workflow.text: \"${wrod} ${formatTime(instanceTime(),'HH')}\": unknown variable '${wrod}'",
        "workflow.after: 'none.txt' is not a file in the folder of the entity definitions",
        "properties.spark.executor.memory: Spark reads spark.executor.memory when it starts, and constant runs in the ",
    ):
        assert said in told.stdout
    (home / "entity_defs" / "all.yaml").write_text(ENTITIES.replace("engine: constant", "engine: constnat"))
    assert "unknown engine 'constnat' (did you mean 'constant'?)" in falcon(home, "validate").stdout
    (home / "entity_defs" / "all.yaml").write_text(ENTITIES.replace('text: "${word}', 'txt: "${word}'))
    assert "workflow.txt: unknown key 'txt' (did you mean 'text'?)" in falcon(home, "validate").stdout


@pytest.fixture(params=["data", "s3://lake/data"], ids=["files", "objects"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str, Callable[[str], bytes]]]:
    """A write endpoint, its options, and how others read what is there."""
    if request.param == "data":
        yield "data", "{}", lambda path: (tmp_path / "data" / path).read_bytes()
        return
    with s3_server(tmp_path) as url:
        client = boto3.client("s3", endpoint_url=url, aws_access_key_id=KEY, aws_secret_access_key=SECRET)
        client.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        options = json.dumps(lake(url)["storage_options"])
        yield request.param, options, lambda path: client.get_object(Bucket="lake", Key=f"data/{path}")["Body"].read()


def test_what_needs_no_spark_is_computed_published_and_replicated_without_a_jvm(
    tmp_path: Path, database: str, written: tuple[str, str, Callable[[str], bytes]]
) -> None:
    java, started = tmp_path / "java", tmp_path / "started"
    for folder in (java / "bin", tmp_path / "engines", tmp_path / "entity_defs"):
        folder.mkdir(parents=True)
    program = java / "bin" / "java"
    program.write_text(f'#!/bin/sh\necho "$@" >> {started}\necho \'openjdk version "17.0.1"\' >&2\n')
    program.chmod(0o755)
    submit = [str(Path(_find_spark_home(), "bin", "spark-submit")), "--version"]
    subprocess.run(submit, env={**environ_with(), "JAVA_HOME": str(java)}, capture_output=True, check=False)
    assert "org.apache.spark" in started.read_text()  # this is what Spark would start
    started.unlink()
    needs_none = ENGINE.replace("    kinds: ", '    spark = "none"\n    kinds: ')
    (tmp_path / "engines" / "constant.py").write_text(needs_none)
    endpoint, options, read_there = written
    entities = ENTITIES.replace(SETTING, "properties: {word: hello}").replace(
        "endpoint: data}", f"endpoint: {endpoint}}}"
    )
    entities = entities.replace("\n---", f"\nstorage_options: {options}\n---", 1)
    feed = "told" if endpoint == "data" else "stored"  # both in one database
    entities = entities.replace("told", feed).replace("name: tell", f"name: tell-{feed}")
    (tmp_path / "entity_defs" / "all.yaml").write_text(entities)
    place = {"FALCON_DATABASE_URL": database, "JAVA_HOME": str(java), **ENVIRON}
    ran = falcon(tmp_path, "run", FALCON_CLOCK="2013-01-01T03:00Z", **place)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for read in (read_there, lambda path: (tmp_path / "backup" / path).read_bytes()):
        for hour in ("00", "01"):
            assert read(f"{feed}/2013-01-01-{hour}/part.txt") == f"hello {hour}".encode()
            assert read(f"{feed}/2013-01-01-{hour}/_SUCCESS") == b""
    assert not started.exists() or set(started.read_text().splitlines()) <= {"-version"}
