"""``make up``: the demo in time lapse, with everything that it takes, until Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import click

from examples.flights.family import end_family
from examples.flights.landing import Landed, first_landing, first_not_landed
from examples.flights.live import land_until_the_end
from examples.flights.news import News
from examples.flights.ports import listens, require_port
from falcon_assets.base.deferred_signals import deferred_signals
from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.spark.connect_server import own_server
from falcon_assets.errors import FalconError, SettingsError
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.machine import require_machine
from falcon_assets.settings import Settings, load_settings
from falcon_assets.shared_clock import start_anew
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.surface.cli.quiet import private_log

_SPEED = "120x"
"""Half a minute per hour."""
_AT_ONCE = timedelta(days=1)
"""So much of the demo is there when it begins, so that there is something to see."""
_BACK = timedelta(days=7)
_POLL_SECONDS = 1.0
_LAST_LINES = 20
_BUSY = {
    "DAGSTER_CODE_SERVER_MAX_WORKERS": "32",
    "DAGSTER_GRPC_MAX_WORKERS": "32",
    "DAGSTER_GRPC_PROXY_HEARTBEAT_TTL_SECONDS": "300",
}
"""A code server ends itself when it hears no heartbeat, and it hears none while each of its threads works on a tick: by
default they are as many as the processors and four more, which are fewer than the threads that ask for ticks."""


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
    if _told(settings) and not settings.clock.runs:
        raise SettingsError("make up needs a clock that runs: FALCON_CLOCK=2013-01-02T00:00Z@120x, or none at all")
    require_machine(settings.environ, settings.home)
    require_port(port)
    with open_installation(settings) as installation:
        store = installation.entities
    log = settings.home / "up.log"
    with alone(settings.home), _signals(), own_server(settings.home, settings.environ) as serve:
        click.echo(f"Dagster's UI: http://127.0.0.1:{port} (in half a minute: Spark and Dagster are starting)")
        click.echo(f"What they say: {log}")
        for cluster in store.clusters.values():
            serve(cluster)
        with open_installation(_with_clock(settings, store)) as installation:
            installation.set_clock(anew=not _told(settings))
            _run(installation, store, port, log)


class _EndedError(FalconError):
    """Dagster ended by itself."""


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """No other ``make up`` runs on that FALCON_HOME meanwhile.

    Raises:
        SettingsError: one does.
    """
    with path_lock(home / "up.lock", 0) as held:
        if not held:
            raise SettingsError(f"make up runs already on FALCON_HOME {home}: end it with Ctrl-C first")
        yield


@contextmanager
def _signals() -> Iterator[None]:
    """Whoever ends this process, or closes its terminal, ends it as Ctrl-C does: once, for its end is bounded.

    Also where the shell of a script, which starts it with ``&``, has let it ignore Ctrl-C: its children would as well.
    """

    def interrupt(*_: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        click.echo("Stopping: what runs now is interrupted, and goes on the next time.")
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Stopped.")
        return  # on the way out nothing is interrupted any more
    for number, handler in before.items():
        signal.signal(number, handler)


def _told(settings: Settings) -> bool:
    return bool(settings.environ.get("FALCON_CLOCK", "").strip())


def _with_clock(settings: Settings, store: EntityStore) -> Settings:
    """The settings with the clock that FALCON_CLOCK says, else with one that goes on where the data ends."""
    environ: Mapping[str, str] = settings.environ
    if not _told(settings):
        begins = max(first_not_landed(store, settings), first_landing(store) + _AT_ONCE)
        start_anew(settings.home)
        environ = {**environ, "FALCON_CLOCK": f"{format_instant(begins)}@{_SPEED}"}
    environ = {**environ, "FALCON_HOME": str(settings.home), "FALCON_ENTITY_DEFS": str(settings.entity_defs)}
    return load_settings(environ)


def _run(installation: Installation, store: EntityStore, port: int, log: Path) -> None:
    # The embedded server is opened here, so it ends with us, not sooner, and also where we have to kill others.
    settings = installation.settings
    news = News(installation.database, settings)
    address = ("--host", "127.0.0.1", "--port", str(port))
    command = [sys.executable, "-m", "dagster", "dev", *address, "--log-level", "warning"]
    with ExitStack() as started:
        with private_log(log) as output, deferred_signals():
            # In a session of its own: Ctrl-C shall reach us, and we end it in order.
            dagster = subprocess.Popen(
                command,
                env=_BUSY | dict(settings.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            started.callback(end_family, dagster)
        watch = _Watch(dagster, news, port, log)
        land_until_the_end(settings, store, _BACK, watch.wait, watch.changed.append)
        watch.wait(None)


@dataclass
class _Watch:
    """Waits, and tells meanwhile what goes on."""

    dagster: subprocess.Popen[bytes]
    news: News
    port: int
    log: Path
    changed: list[Landed] = field(default_factory=list)
    """Dagster has yet to be told of these: after its cut-off nobody looks at an instance unasked."""
    _serves: bool = False

    def wait(self, seconds: float | None) -> None:
        """Waits so long; None: for ever.

        Raises:
            _EndedError: Dagster ended.
        """
        give_up = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _POLL_SECONDS if give_up is None else min(_POLL_SECONDS, max(give_up - time.monotonic(), 0))
            with suppress(subprocess.TimeoutExpired):
                code = self.dagster.wait(left)
                raise _EndedError(f"dagster dev ended by itself, with exit code {code}; {_said_last(self.log)}")
            if not self._serves and listens(self.port):
                self._serves = True
                click.echo("Dagster's UI is there.")
            while self._serves and self.changed and _push(self.port, self.changed[0]):
                del self.changed[0]
            self.news.tell()
            if give_up is not None and time.monotonic() >= give_up:
                return


def _push(port: int, one: Landed) -> bool:
    """Tells Dagster that an instance changed, as jobs that land data do; whether it has heard it."""
    body = json.dumps({"partition": format_instant(one.instance)})
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        path = f"/report_asset_materialization/{one.cluster.name}/{one.feed.name}"
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _said_last(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
    return "\n".join([f"the last lines of {log}:", *lines])
