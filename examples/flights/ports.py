"""Whether somebody listens on a port of loopback."""

from __future__ import annotations

import socket

from falcon_assets.errors import SettingsError


def require_port(port: int) -> None:
    """Checks that nothing listens there.

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
    """Whether something listens there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
