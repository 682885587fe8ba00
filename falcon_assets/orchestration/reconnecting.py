"""Connections that are waited for while PostgreSQL restarts, instead of failing what needs one just then."""

from __future__ import annotations

import time
from typing import Any

from psycopg2 import OperationalError
from sqlalchemy import Engine, event

from falcon_assets.orchestration.interruptible import wait_in_python
from falcon_assets.orchestration.postgres import revive_embedded

_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.2
_away_since: dict[str, float] = {}
"""Database -> since when it has been away: who asks after the others does not wait for all of it again."""


def wait_out_restarts(engine: Engine) -> Engine:
    """Lets the engine try to connect until the database has been away for half a minute, whoever noticed it first.

    For an engine that has connected before, so its URL is right. With ``pool_pre_ping`` only statements that are under
    way at that very moment fail. All waiting can be interrupted.
    """
    wait_in_python()
    name = engine.url.render_as_string(hide_password=True)

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _record: Any, args: Any, parameters: Any) -> Any:
        while True:
            try:
                connection = dialect.connect(*args, **parameters)
            except OperationalError:
                since = _away_since.setdefault(name, time.monotonic())
                if time.monotonic() - since > _PATIENCE_SECONDS:
                    raise
                revive_embedded(engine.url)
                time.sleep(_POLL_SECONDS)  # nothing tells when the server is back
            else:
                _away_since.pop(name, None)
                return connection

    return engine
