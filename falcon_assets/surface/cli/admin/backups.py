"""``falcon admin backup|restore``: the whole installation in a file, and back."""

from __future__ import annotations

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.backup.operations import (
    BackUpInstallation,
    MadeBackup,
    RestoredBackup,
    RestoreInstallation,
)
from falcon_assets.surface.cli.declared import command


def _show_made(made: MadeBackup) -> None:
    for one in made.left_out:
        click.echo(f"left out: {printable(one)}", err=True)
    what = _counted(made.tables, made.files)
    click.echo(f"{printable(made.file)}: {made.size:,} bytes, {what}, in {made.seconds:.1f} s")


def _show_restored(restored: RestoredBackup) -> None:
    what = _counted(restored.tables, restored.files)
    click.echo(f"restored as of {restored.made:%Y-%m-%d %H:%M:%S} UTC: {what}, in {restored.seconds:.1f} s")
    if restored.found != restored.revision:
        click.echo(f"the ledger was migrated from revision {restored.found or 'none'} to {restored.revision}")
    for one in restored.left:
        click.echo(one)


def _counted(tables: int, files: dict[str, int]) -> str:
    trees = (f"{count_of(number, 'file')} of {name}" for name, number in files.items())
    return ", ".join([count_of(tables, "table"), *trees])


backup = command(BackUpInstallation, _show_made)
restore = command(RestoreInstallation, _show_restored)
