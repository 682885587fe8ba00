"""Who connects for the first time waits for a server that is starting, and for no other."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg2 import OperationalError
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError as Refused

from falcon_assets.history.platform import reconnecting
from falcon_assets.history.platform.reconnecting import wait_out_restarts


@pytest.mark.parametrize(
    ("said", "is_waited"),
    [
        ("FATAL:  the database system is starting up", True),
        ("FATAL:  the database system is in recovery mode", True),
        ("FATAL:  the database system is not yet accepting connections", True),
        ("FATAL:  the database system is shutting down", True),
        ('FATAL:  password authentication failed for user "etl"', False),
        ("connection refused", False),
    ],
)
def test_a_first_connection(database: str, monkeypatch: pytest.MonkeyPatch, said: str, is_waited: bool) -> None:
    engine = create_engine(database)
    connect, answers = engine.dialect.connect, [said, said]

    def answered(*args: Any, **parameters: Any) -> Any:
        if answers:
            raise OperationalError(answers.pop())
        return connect(*args, **parameters)

    monkeypatch.setattr(engine.dialect, "connect", answered)
    monkeypatch.setattr(reconnecting, "is_embedded", lambda _url: False)
    wait_out_restarts(engine, is_known=False)
    if not is_waited:
        with pytest.raises(Refused, match=said):
            engine.connect()
        answers.clear()
    with engine.connect() as connection:
        assert connection.execute(text("SELECT 42")).scalar_one() == 42
    engine.dispose()
    answers[:] = ["connection refused"]  # it is known now, so it will be back
    with engine.connect():
        assert not answers
    engine.dispose()
