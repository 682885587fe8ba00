"""``falcon doctor``: is this machine ready?"""

from __future__ import annotations

import socket

import click

from falcon_assets.errors import SettingsError
from falcon_assets.operations.machine import require_machine
from falcon_assets.settings import load_settings


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Also check that this TCP port is free.")
def doctor(port: int | None) -> None:
    """Check Java, the disk of FALCON_HOME and, with --port, that a port is free; silent when all is well."""
    settings = load_settings()
    require_machine(settings.environ, settings.home)
    if port is not None:
        require_port(port)


def require_port(port: int) -> None:
    """Checks that nothing listens on the loopback port.

    Raises:
        SettingsError: something does.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SettingsError(
                f"port {port} on 127.0.0.1 cannot be used ({error.strerror}): stop what listens there, "
                f"or choose another one, for example {port % 65535 + 1}"
            ) from error


def listens(port: int) -> bool:
    """Whether something listens on the loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
