"""Connections that are waited for while PostgreSQL restarts, instead of failing what needs one just then."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from psycopg2 import OperationalError
from sqlalchemy import Engine, event

from falcon_assets.orchestration.dagster_internals.retries import NotTriedAgain
from falcon_assets.orchestration.platform.interruptible import wait_in_python
from falcon_assets.orchestration.platform.postgres import revive_embedded

_PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.2
_ANSWER_SECONDS = 30.0
"""So long the last answer stands for a database that is away for good; one that is silent takes ten to give it."""


@dataclass
class _Absence:
    """Since when a database has been away, and what the last attempt to connect brought, and when."""

    since: float
    last: float
    reason: str


_absences: dict[str, _Absence] = {}
"""By database: who asks after the others does not wait for all of it again."""


def wait_out_restarts(engine: Engine) -> Engine:
    """Lets the engine try to connect until the database has been away for half a minute, whoever noticed it first.

    For an engine that has connected before, so its URL is right. With ``pool_pre_ping`` only statements that are under
    way at that very moment fail. All waiting can be interrupted.
    """
    wait_in_python()
    name = engine.url.render_as_string(hide_password=True)

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _record: Any, args: Any, parameters: Any) -> Any:
        known = _absences.get(name)
        if known and _is_given_up(known) and time.monotonic() - known.last < _ANSWER_SECONDS:
            # To end in order takes many questions.
            raise NotTriedAgain(known.reason)
        while True:
            try:
                connection = dialect.connect(*args, **parameters)
            except OperationalError as error:
                now = time.monotonic()
                absence = _absences.setdefault(name, _Absence(now, now, ""))
                absence.last, absence.reason = now, str(error)
                if _is_given_up(absence):
                    raise
                revive_embedded(engine.url)
                time.sleep(_POLL_SECONDS)  # nothing tells when the server is back
            else:
                _absences.pop(name, None)
                return connection

    return engine


def _is_given_up(absence: _Absence) -> bool:
    return absence.last - absence.since > _PATIENCE_SECONDS
