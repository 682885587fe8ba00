"""The daemon reads a code location again only where its server is another one.

Dagster's daemon does it every minute, definitions of all jobs included: with thousands of them that takes seven seconds
of processor time in the daemon, and as many in the code server. A server that reloads has another id, and the daemon is
told of it at once; that it reads everything again anyway is for servers that it started itself, which are left to it.
"""

from __future__ import annotations

import sys
import time
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster._core.workspace.context import IWorkspaceProcessContext

_CONTROLLER = "dagster._daemon.controller"
_AT_LEAST_EVERY_SECONDS = 1800.0


def read_only_other_servers() -> None:
    """Has an effect in the daemon's process only; idempotent."""
    controller = getattr(sys.modules.get(_CONTROLLER), "DagsterDaemonController", None)
    original = getattr(controller, "check_workspace_freshness", None)
    if controller is None or original is None or hasattr(original, "__wrapped__"):
        return

    @wraps(original)
    def check(self: Any, last_workspace_update_time: float) -> float:
        now = time.time()
        read_at = self.__dict__.setdefault("_falcon_read_at", now)
        is_due = now - last_workspace_update_time > sys.modules[_CONTROLLER].__dict__["RELOAD_WORKSPACE_INTERVAL"]
        if is_due and now - read_at < _AT_LEAST_EVERY_SECONDS and is_as_read(self._workspace_process_context):
            return now
        found: float = original(self, last_workspace_update_time)
        if found != last_workspace_update_time:
            self._falcon_read_at = now
        return found

    controller.check_workspace_freshness = check


def is_as_read(context: IWorkspaceProcessContext[Any]) -> bool:
    """Whether all locations were read, from servers that somebody else runs, and that are the same ones still."""
    from dagster._core.remote_origin import GrpcServerCodeLocationOrigin  # noqa: PLC0415 - the daemon has it loaded
    from dagster._core.remote_representation.code_location import GrpcServerCodeLocation  # noqa: PLC0415 - as above

    entries = context.create_request_context().get_code_location_entries().values()
    for entry in entries:
        location = entry.code_location
        if not (
            isinstance(entry.origin, GrpcServerCodeLocationOrigin) and isinstance(location, GrpcServerCodeLocation)
        ):
            return False
        try:
            if location.client.get_server_id(timeout=2) != location.server_id:
                return False
        except Exception:  # whatever it is, Dagster says it when it reads the location
            return False
    return True
