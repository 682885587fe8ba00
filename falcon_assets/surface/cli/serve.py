"""``falcon serve``: Dagster's webserver with our routes, its daemon and the code servers, kept running together."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from falcon_assets.base.garbage_collection import imports_without_gc
from falcon_assets.errors import SettingsError
from falcon_assets.settings import Settings, load_settings

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
PARTS = ("front", "daemon", "code")


@click.command()
@click.option("--only", type=click.Choice(PARTS), help="Run only this part, as a service of its own.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that the front listens at.")
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="TCP port of the front.")
@click.option("--path-prefix", default="", metavar="PATH", help="Begins all paths of the front, such as /falcon-prod.")
@click.option(
    "--workspace",
    "-w",
    type=click.Path(path_type=Path),
    default=Path("workspace.yaml"),
    show_default=True,
    help="Code locations to serve.",
)
def serve(only: str | None, host: str, port: int, path_prefix: str, workspace: Path) -> None:
    """Serve Dagster's UI, daemon and code locations, for one or many users.

    A part that ends is started again; Ctrl-C or SIGTERM ends all of them. Where no way to log in is configured, only
    this machine is served, and everybody on it is the user of this process.
    """
    from falcon_assets.surface.front import programs  # noqa: PLC0415 - takes a while

    settings = load_settings()
    _require_sound(settings, host, path_prefix)
    served = programs.served(settings, workspace)
    environ = programs.environ_of_programs(settings, Path.cwd())
    if only == "front":
        own = load_settings({**programs.RELOADS_ITSELF, **settings.environ})
        _serve_front(own, host, port, path_prefix, served.workspace)
        return
    from falcon_assets.surface.front.supervisor import Supervisor  # noqa: PLC0415 - as above

    parts = {
        "code": served.code,
        "daemon": (programs.daemon(served.workspace),),
        "front": (programs.front(host, port, path_prefix, workspace),),
    }
    chosen = [one for name, some in parts.items() if only in (None, name) for one in some]
    if not chosen:
        raise SettingsError(f"{workspace} has no code location that is served from here")
    if served.code and only in (None, "code"):
        from falcon_assets.surface.front.reloading import Reloading  # noqa: PLC0415 - as above

        Reloading(settings.entity_defs, served.sockets, environ, lambda line: click.echo(f"code   | {line}")).begin()
    sys.exit(0 if Supervisor(environ, click.echo).keep(chosen) else 1)


def _require_sound(settings: Settings, host: str, path_prefix: str) -> None:
    if path_prefix and (not path_prefix.startswith("/") or path_prefix.endswith("/")):
        raise SettingsError(f"--path-prefix {path_prefix!r} must begin with /, and not end with it")
    if host not in _LOOPBACK and settings.logins is None:
        raise SettingsError(
            f"no way to log in is configured, so everybody who reaches {host} could do everything as "
            f"{settings.user}: configure one (FALCON_LOGINS), or leave --host out"
        )
    for file in (settings.tls.certificate, settings.tls.key) if settings.tls else ():
        try:
            file.open("rb").close()
        except OSError as error:
            raise SettingsError(f"FALCON_TLS_CERTIFICATE, FALCON_TLS_KEY: {file}: {error.strerror}") from error


def _serve_front(settings: Settings, host: str, port: int, path_prefix: str, workspace: Path) -> None:
    with imports_without_gc():
        from falcon_assets.features.logins.declaration import read_logins  # noqa: PLC0415 - as below
        from falcon_assets.surface.front.app import open_front  # noqa: PLC0415 - loads Dagster
        from falcon_assets.surface.front.server import run_server  # noqa: PLC0415 - as above

    scheme = "https" if settings.tls else "http"
    declared = read_logins(settings.logins) if settings.logins else None
    with open_front(settings, workspace, path_prefix) as app:
        who = "users log in" if declared else f"serves only this machine: everybody is {settings.user}"
        click.echo(f"{scheme}://{host}:{port}{path_prefix} {who}")
        users = declared.certificates.file if declared and declared.certificates else None
        run_server(app, host, port, settings.tls, users)
