"""``falcon secrets``: encrypted values of definitions, and their keys."""

from __future__ import annotations

import sys

import click
from rich.table import Table

from falcon_assets.errors import UsageError, count_of
from falcon_assets.features.secrets.operations import (
    CheckedSecrets,
    CheckSecrets,
    EncryptedText,
    EncryptValue,
    MakeKey,
    NewKey,
    RotateKeys,
    Rotation,
)
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command, command_of, perform
from falcon_assets.surface.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def secrets() -> None:
    """Encrypt secrets in definitions; make, rotate and check their keys."""


def _show_key(made: NewKey) -> None:
    click.echo(f"master key {made.id} is in {shown(str(made.file))}")
    click.echo(f"set FALCON_MASTER_KEY_FILE={shown(str(made.file))} here and wherever Dagster runs")


def _show_rotation(done: Rotation) -> None:
    would = "would be " if done.dry_run else ""
    click.echo(f"customer keys {', '.join(done.kept)} {would}wrapped by master key {done.master}")
    if done.removed:
        click.echo(f"customer keys {', '.join(done.removed)} {would}removed: no value needs them")
    for file in done.files:
        click.echo(shown(file))
    if done.files:
        click.echo(f"{count_of(done.values, 'value')} {would}encrypted anew")
    if done.reload:
        click.echo(done.reload)


def _show_checked(found: CheckedSecrets) -> None:
    table = Table("place", "customer key", "file")
    table.add_column("result", overflow="fold")
    for one in found.secrets:
        result = f"[red]{shown(one.problem)}[/]" if one.problem else "[green]ok[/]"
        table.add_row(shown(one.place), one.customer_key, shown(str(one.position)), result)
    print_table(table, nothing="nothing is encrypted in the definitions")


def _show_encrypted(made: EncryptedText) -> None:
    if made.made:
        click.echo(f"{made.made} has the customer key: keep it with the definitions", err=True)
    click.echo(f'{{encrypted: "{made.encrypted}"}}')


@secrets.add_command
@command_of(EncryptValue)
def encrypt(asked: EncryptValue, as_json: bool) -> None:
    with open_installation() as installation:
        made = asked.model_copy(update={"value": given_secret("Value")}).run(installation)
    perform(made, _show_encrypted, as_json=as_json)


def given_secret(prompt: str) -> str:
    """Never an argument: every user of the machine can read those."""
    if sys.stdin.isatty():
        return str(click.prompt(prompt, hide_input=True, confirmation_prompt=True, err=True))
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise UsageError(f"the {prompt.lower()} is not UTF-8: encode it, as base64 for example") from None


secrets.add_command(command(MakeKey, _show_key))
secrets.add_command(command(RotateKeys, _show_rotation))
secrets.add_command(command(CheckSecrets, _show_checked))
