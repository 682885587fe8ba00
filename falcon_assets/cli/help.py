"""Groups of commands whose help is told in whole: what each command is for, and an example of its use."""

from __future__ import annotations

from collections.abc import Iterator

import click

from falcon_assets.cli.examples import EXAMPLES

_ANY_LENGTH = 1000


class FullHelpGroup(click.Group):
    """Lists its commands in the order of their declaration, each with its whole first sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order in which they were added."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, its example at the end of its help."""
        command = super().get_command(ctx, cmd_name)
        example = EXAMPLES.get(" ".join([*_path(ctx), cmd_name]))
        if command is not None and example is not None:
            command.epilog = f"\b\nExample: falcon {example}"  # click would break it at a hyphen
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help text; click itself cuts sentences off."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(_ANY_LENGTH)) for name, one in found if one])


def _path(context: click.Context) -> Iterator[str]:
    """The names of the groups down to this one, without the program's."""
    if context.parent is not None:
        yield from _path(context.parent)
        yield context.command.name or ""
