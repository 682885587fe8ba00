"""What cannot be understood ends with 2, what cannot be done with 1, each with one sentence; of every command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import click
import pytest

from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.cli.parameters import INSTANT
from tests.features.entities.trees import AWAY
from tests.operations.entities import RETAINED
from tests.processes import FALCON, environ_with, falcon_here

WRONG = {"filter": "colour=red", "sort": "colour", "timeout": "soon"}
"""Of parameters whose type says nothing."""


def commands(
    group: click.Group, *names: str, above: click.Context | None = None
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group, above)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *names, name, above=context)
        else:
            yield (*names, name), command


COMMANDS = dict(commands(falcon))


def wrong(parameter: click.Parameter) -> str | None:
    """A value that cannot be read; None: every text can."""
    if isinstance(parameter.type, click.types.IntParamType) or parameter.type is INSTANT:
        return "yesterday"
    if isinstance(parameter.type, click.Choice):
        return "no-such-word"
    return WRONG.get(parameter.opts[-1].removeprefix("--"))


def right(parameter: click.Parameter) -> str:
    """A value that can be read."""
    if parameter.type is INSTANT:
        return "2013-01-01T00:00Z"
    return "1" if isinstance(parameter.type, click.types.IntParamType) else "x"


def line(names: tuple[str, ...], command: click.Command, told: click.Parameter | None, value: str) -> list[str]:
    """The command with that value of a parameter, and with whatever else it needs."""
    options, arguments = [], []
    for one in command.params:
        text = value if one is told else right(one) if one.required else None
        if text is not None and isinstance(one, click.Option):
            options += [one.opts[-1], text]
        elif text is not None:
            arguments.append(text)
    return [*names, *options, "--", *arguments]


MALFORMED = {
    " ".join([*names, one.opts[-1]]): line(names, command, one, value)
    for names, command in COMMANDS.items()
    for one in command.params
    if (value := wrong(one)) is not None
}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., CompletedProcess[str]]:
    """The program on definitions without problems; no database is there."""
    (tmp_path / "all.yaml").write_text(RETAINED)
    (tmp_path / "a.sql").write_text("SELECT 1")
    environ = environ_with(
        FALCON_HOME=str(tmp_path / "home"),
        FALCON_ENTITY_DEFS=str(tmp_path),
        FALCON_DATABASE_URL=AWAY,
        FALCON_CLOCK="2013-01-01T05:30Z",
    )
    return lambda *arguments: falcon_here(environ, *arguments)


def assert_refused(done: CompletedProcess[str], code: int) -> None:
    """It ends with that, and says why."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_value(run: Callable[..., CompletedProcess[str]], arguments: list[str]) -> None:
    assert_refused(run(*arguments), 2)


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_an_unknown_option(run: Callable[..., CompletedProcess[str]], names: tuple[str, ...]) -> None:
    assert_refused(run(*names, "--no-such-option"), 2)


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_instants_are_read_by_their_type(names: tuple[str, ...]) -> None:
    instants = {"instance", "start", "end", "until", "as_of"}
    assert all(one.type is INSTANT for one in COMMANDS[names].params if one.name in instants)


CONTRADICTIONS = {
    "an end before the start": "instance list --start 2013-01-02T00:00Z --end 2013-01-01T00:00Z",
    "collecting backwards": "instance collect raw --start 2013-01-02T00:00Z --end 2013-01-01T00:00Z",
    "another state than RUNNING": "instance running --filter state=FAILED",
    "an unknown state": "instance list --filter state=DONE",
    "an unknown state of a status": "instance status reader --filter state=DONE",
    "no part of a list": "instance list --after x",
    "an order without a name": "instance list --sort -",
    "an unknown status": "entity list --filter status=DONE",
    "an unknown kind": "entity list --filter kind=schedule",
    "a filter without a value": "entity list --filter name",
    "a list of nothing": "instance list --limit 0",
}


@pytest.mark.parametrize("words", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_makes_no_sense(run: Callable[..., CompletedProcess[str]], words: str) -> None:
    assert_refused(run(*words.split()), 2)


IMPOSSIBLE = {
    "no such entity": "explain nobody 2013-01-01T00:00Z",
    "no such file": "entity submit nothing.yaml",
    "no such instance": "explain reader 2013-01-01T00:30Z",
    "no database": "instance list",
    "no definitions": "validate nowhere",
}


@pytest.mark.parametrize("words", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_done(run: Callable[..., CompletedProcess[str]], words: str) -> None:
    assert_refused(run(*words.split()), 1)


def test_output_to_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    """Also what Python writes at its exit of what was left in a buffer."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([FALCON, "schema"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "Error: what is printed cannot be written: No space left on device\n",
    )
