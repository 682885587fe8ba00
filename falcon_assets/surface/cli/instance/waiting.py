"""``falcon instance wait``: for scripts, and for pipelines of continuous integration."""

from __future__ import annotations

import inspect
import sys

import click

from falcon_assets.instances.operations.waiting import WaitForInstance, WaitResult
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import options_of, perform


@click.command(help=inspect.getdoc(WaitForInstance))
@options_of(WaitForInstance, "Print JSON instead of a sentence.")
def wait(asked: WaitForInstance, as_json: bool) -> None:
    try:
        with open_installation() as installation:
            result = asked.run(installation)
    except KeyboardInterrupt:
        sys.exit(130)
    perform(result, _show, as_json=as_json)


def _show(result: WaitResult) -> None:
    click.echo(result.text, err=not result.reached)
