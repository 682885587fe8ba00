"""What a stranger reads first: each command says what it is for, and examples can be typed as they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from falcon_assets.surface.cli.help import EXAMPLES
from falcon_assets.surface.cli.main import falcon


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Context]]:
    """All commands below a group, by their words."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=context)
        yield below.command_path.partition(" ")[2], below
        if isinstance(command, click.Group):
            yield from commands(command, below)


ALL = dict(commands(falcon, click.Context(falcon, info_name="falcon")))


@pytest.mark.parametrize("words", ["", *ALL])
def test_help_is_whole(words: str) -> None:
    result = CliRunner().invoke(falcon, [*words.split(), "--help"], prog_name="falcon")
    assert result.exit_code == 0
    purpose = result.output.split("\n\n")[1].strip()
    assert purpose[0].isupper()
    assert purpose.endswith(".")
    assert not any(line.endswith("...") for line in result.output.splitlines()[1:])
    if words in EXAMPLES:
        assert f"Example: falcon {EXAMPLES[words]}" in " ".join(result.output.split())


@pytest.mark.parametrize("words", EXAMPLES)
def test_an_example_can_be_typed(words: str) -> None:
    context = ALL[words]
    typed = shlex.split(EXAMPLES[words].removeprefix(words))
    context.command.make_context(context.info_name, typed, parent=context.parent)


@pytest.mark.parametrize(
    ("typed", "meant"),
    {
        "instnce list": "No such command 'instnce' (did you mean 'instance'?).",
        "instance rrun": "No such command 'rrun' (did you mean 'rerun'?).",
        "sla alrts": "No such command 'alrts' (did you mean 'alerts'?).",
        "rerun x": "No such command 'rerun' (did you mean falcon instance rerun?).",
        "nonsense": "No such command 'nonsense'.",
    }.items(),
)
def test_a_command_that_there_is_not(typed: str, meant: str) -> None:
    result = CliRunner().invoke(falcon, typed.split(), prog_name="falcon")
    assert result.exit_code == 2
    assert f"Error: {meant}\n" in result.output
