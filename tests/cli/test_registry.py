"""An operation is a class in one file: command, operation of a job, Python API and reference derive from it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest
from click.testing import CliRunner

from docs.generated import commands
from falcon_assets import api, features
from falcon_assets.operations.installation import open_installation
from falcon_assets.operations.operation import Change, Operation
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.jobs.operation_jobs import operation_job
from falcon_assets.surface.registry import changes, registry

GREETINGS = '''
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from falcon_assets.operations.audit import audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Operation, Result


@dataclass(frozen=True)
class Greeting(Result):
    text: str


class GreetEntity(Change):
    """Greet NAME."""

    command = "entity greet"
    name: Annotated[str, Given("NAME")]
    word: str = Field("hello", description="Which word.")

    def run(self, installation: Installation) -> Greeting:
        with audited(installation, self.command, self) as audit:
            audit.result(True)
        return Greeting(f"{self.word} {self.name}")


class ListGreetings(Operation):
    """List what was said."""

    command = "greeting list"

    def run(self, installation: Installation) -> str:
        return "nothing"
'''


@pytest.fixture
def greetings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A feature of one file."""
    (tmp_path / "greetings").mkdir()
    (tmp_path / "greetings" / "__init__.py").touch()
    (tmp_path / "greetings" / "operations.py").write_text(GREETINGS)
    monkeypatch.setattr(features, "__path__", [*features.__path__, str(tmp_path)])
    registry.cache_clear()
    yield
    registry.cache_clear()


def call(*words: str) -> str:
    done = CliRunner().invoke(falcon, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_it_is_a_command(greetings: None, settings: Settings) -> None:
    assert "greet                Greet NAME." in call("entity", "--help")
    assert "--word TEXT    Which word." in call("entity", "greet", "--help")
    assert json.loads(call("entity", "greet", "raw", "--json")) == {"text": "hello raw"}
    assert json.loads(call("entity", "greet", "raw", "--word", "hi")) == {"text": "hi raw"}
    assert call("greeting", "list") == "nothing\n"
    assert json.loads(call("admin", "audit", "--limit", "1", "--json"))["items"][0]["operation"] == "entity greet"


def test_it_is_an_operation_of_the_job(greetings: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCON_JOBS", "entities")
    job = operation_job("entity", "entities", {"operation": "greet"}, "Greets, too.")
    config = {"operation": "greet", "names": ["raw"], "word": "hi"}
    with open_installation() as installation:
        done = job.execute_in_process({"ops": {"entity_operation": {"config": config}}}, instance=installation.instance)
    (output,) = (one for one in done.all_events if one.event_type is dg.DagsterEventType.STEP_OUTPUT)
    assert output.step_output_data.metadata["result"].value == {"text": "hi raw"}


def test_it_is_in_the_python_api_and_in_the_reference(greetings: None, settings: Settings) -> None:
    with open_installation() as installation:
        assert api.GreetEntity(name="raw").run(installation).text == "hello raw"
    assert {"GreetEntity", "ListGreetings"} <= set(dir(api))
    reference = commands(falcon, "falcon")
    assert "#### falcon entity greet\n" in reference
    assert "#### falcon greeting list\n" in reference


def test_the_registry_has_all_operations_and_no_others() -> None:
    def operations_in(module: ModuleType) -> Iterator[type[Operation]]:
        for one in vars(module).values():
            if inspect.isclass(one) and issubclass(one, Operation) and one.__module__ == module.__name__:
                yield one

    loaded = {command: one.load() for command, one in registry().items()}
    assert {command: one.command for command, one in loaded.items()} == {command: command for command in loaded}
    package = Path(api.__file__).parent
    texts = {path: path.read_text() for path in package.rglob("*.py")}
    modules = (path for path, text in texts.items() if re.search(r"^ +command\b.*=", text, re.MULTILINE))
    found = {
        one
        for path in modules
        for one in operations_in(import_module(".".join(path.relative_to(package.parent).with_suffix("").parts)))
        if "command" in vars(one)
    }
    assert found == set(loaded.values())


def test_changes_are_found_without_loading_anything_else() -> None:
    for noun in ("entity", "instance"):
        of_noun = [one.load() for command, one in registry().items() if command.startswith(f"{noun} ")]
        assert changes(noun) == [one for one in of_noun if issubclass(one, Change)]


def test_what_is_no_operation_is_not_in_the_python_api() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Greet'"):
        api.Greet  # noqa: B018
