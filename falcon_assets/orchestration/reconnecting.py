"""Connections that are waited for while PostgreSQL restarts, instead of failing what needs one just then."""

from __future__ import annotations

import time
from typing import Any

from psycopg2 import OperationalError
from sqlalchemy import Engine, event

_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.2


def wait_out_restarts(engine: Engine) -> Engine:
    """Lets the engine try for half a minute to connect; for one that has connected before, so its URL is right.

    With ``pool_pre_ping`` only statements that are under way at that very moment fail.
    """

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _record: Any, args: Any, parameters: Any) -> Any:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return dialect.connect(*args, **parameters)
            except OperationalError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(_POLL_SECONDS)  # nothing tells when the server is back

    return engine
