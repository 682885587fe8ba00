"""``falcon completion``."""

from __future__ import annotations

import click

from falcon_assets.surface.cli.completing import SHELLS, VARIABLE


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    It completes commands, options and the names of entities. Install it where the shell looks for it: bash in
    ~/.local/share/bash-completion/completions/falcon, zsh in a file _falcon in a folder of $fpath, fish in
    ~/.config/fish/completions/falcon.fish.
    """
    program = context.find_root()
    click.echo(SHELLS[shell](program.command, {}, program.info_name or "falcon", VARIABLE).source())
