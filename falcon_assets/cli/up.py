"""``falcon up``: the demo in time lapse, with everything that it takes, until Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import click

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.cli.demo_live import land_until_the_end
from falcon_assets.cli.doctor import require_port
from falcon_assets.cli.family import end_family
from falcon_assets.demo.landing import first_landing, first_not_landed
from falcon_assets.errors import FalconError, SettingsError
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration.postgres import database_url, require_space
from falcon_assets.settings import Settings, load_settings
from falcon_assets.shared_clock import start_anew
from falcon_assets.spark.java import require_java
from falcon_assets.spark.own_server import own_server
from falcon_assets.storage.path_lock import path_lock

_SPEED = "120x"
"""Half a minute per hour."""
_AT_ONCE = timedelta(days=1)
"""So much of the demo is there when it begins, so that there is something to see."""
_BACK = timedelta(days=7)


@click.command()
@click.option(
    "--port",
    default=3000,
    show_default=True,
    type=click.IntRange(1, 65535),
    help="Where Dagster's UI listens, on 127.0.0.1.",
)
def up(port: int) -> None:
    """Start Dagster on the demo, with flights that land in time lapse, until Ctrl-C.

    FALCON_CLOCK says when in 2013 it is, and how fast time goes. Without it, it begins where the data of the last time
    ends, half a minute per hour. The Spark Connect server that the demo computes on is started, and stopped at the end,
    unless it runs.
    """
    settings = load_settings()
    if settings.clock.origin is not None and not settings.clock.runs:
        raise SettingsError("falcon up needs a clock that runs: FALCON_CLOCK=2013-01-02T00:00Z@120x, or none at all")
    require_java(settings.environ)
    require_space(settings.home)
    require_port(port)
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    with _alone(settings.home), _signals(), own_server(settings.home, settings.environ) as serve:
        try:
            for cluster in store.clusters.values():
                serve(cluster)
            _run(_with_clock(settings, store), store, port)
        except KeyboardInterrupt:
            click.echo("Stopped.")


class _EndedError(FalconError):
    """Dagster ended by itself."""


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    with path_lock(home / "up.lock", 0) as held:
        if not held:
            raise SettingsError(f"falcon up (make up) runs already on FALCON_HOME {home}: end it with Ctrl-C first")
        yield


@contextmanager
def _signals() -> Iterator[None]:
    """Whoever ends this process, or closes its terminal, ends it as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _with_clock(settings: Settings, store: EntityStore) -> Settings:
    """The settings with the clock that FALCON_CLOCK says, else with one that goes on where the data ends."""
    environ: Mapping[str, str] = settings.environ
    if settings.clock.origin is None:
        begins = max(first_not_landed(store, settings), first_landing(store) + _AT_ONCE)
        start_anew(settings.home)
        environ = {**environ, "FALCON_CLOCK": f"{format_instant(begins)}@{_SPEED}"}
    environ = {**environ, "FALCON_HOME": str(settings.home), "FALCON_ENTITY_DEFS": str(settings.entity_defs)}
    return load_settings(environ)


def _run(settings: Settings, store: EntityStore, port: int) -> None:
    database_url(settings)  # so the embedded server ends with us, not sooner, and also where we have to kill others
    address = ("--host", "127.0.0.1", "--port", str(port))
    command = [sys.executable, "-m", "dagster", "dev", *address, "--log-level", "warning"]
    click.echo(f"Dagster's UI: http://127.0.0.1:{port} (in a few seconds)")
    # In a session of its own: Ctrl-C shall reach us, and we end it in order.
    dagster = subprocess.Popen(command, env=dict(settings.environ), start_new_session=True)

    def wait(seconds: float | None) -> None:
        try:
            code = dagster.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise _EndedError(f"dagster dev ended by itself, with exit code {code}; what it said last is above")

    try:
        land_until_the_end(settings, store, _BACK, wait)
        wait(None)
    finally:
        end_family(dagster)
