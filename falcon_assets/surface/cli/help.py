"""Groups of commands whose help is told in whole: what each command is for, and an example of its use."""

from __future__ import annotations

from collections.abc import Iterator

import click

from falcon_assets.surface.cli.examples import EXAMPLES

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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names.

        Raises:
            click.UsageError: there is none of that name; says which one looks like it.
        """
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command {name!r}{self._meant(ctx, name)}.", ctx)

    def _meant(self, ctx: click.Context, name: str) -> str:
        """The command of that name that is further down, or the one here that looks like it."""
        here = " ".join(_path(ctx))
        below = [words for words in EXAMPLES if words.startswith(here) and words.split()[-1] == name]
        if below:
            return f" (did you mean {' or '.join(f'falcon {words}' for words in below)}?)"
        from falcon_assets.model.expression import nearest  # noqa: PLC0415 - only where something is wrong

        return nearest(name, self.list_commands(ctx))

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
