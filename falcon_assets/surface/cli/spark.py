"""``falcon spark``: a local Spark Connect server that stays warm."""

from __future__ import annotations

import sys

import click

from falcon_assets.compute.spark import connect_server as server
from falcon_assets.compute.spark.endpoints.connect_endpoint import DEFAULT_PORT
from falcon_assets.compute.spark.server_process import ServerFiles
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.help import FullHelpGroup

_NOT_RUNNING = 3
"""The exit code of init scripts for a service that does not run (source: Linux Standard Base)."""


@click.group(cls=FullHelpGroup)
def spark() -> None:
    """Run a local Spark Connect server that stays warm between runs.

    Clusters use it with an execute endpoint like sc://127.0.0.1:15002.
    """


@spark.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="TCP port on 127.0.0.1.",
)
def start(port: int) -> None:
    """Start the server unless it is running, and wait until it accepts connections."""
    settings = load_settings()
    started = server.start(settings.home, port, settings.environ)
    ran = "runs already" if started.already else "runs"
    click.echo(f"the Spark Connect server {ran} at {started.server.endpoint} (process {started.server.pid})")


@spark.command()
def stop() -> None:
    """Stop the server; jobs of its clients fail."""
    stopped = server.stop(load_settings().home)
    click.echo("the Spark Connect server does not run" if stopped is None else "the Spark Connect server is stopped")


@spark.command()
def status() -> None:
    """Show whether the server is running and accepts connections.

    The exit code is 0 if it does, else 3.
    """
    home = load_settings().home
    running = server.status(home)
    if running is None:
        click.echo("the Spark Connect server does not run")
        sys.exit(_NOT_RUNNING)
    log = ServerFiles(home).log
    click.echo(f"the Spark Connect server runs at {running.endpoint} (process {running.pid}); its log is {log}")
