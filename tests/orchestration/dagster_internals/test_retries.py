"""Which error Dagster's storages pass on at once."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy

from falcon_assets.history.dagster_internals.retries import NotTriedAgain
from falcon_assets.history.dagster_internals.storage import DATABASE_ERRORS
from tests.orchestration.dagster_internals.stored import stored


def test_a_question_is_given_up_at_once(database: str) -> None:
    engine = sqlalchemy.create_engine(database, isolation_level="AUTOCOMMIT")
    storage = stored(engine)
    storage.dispose()
    attempts: list[object] = []

    @sqlalchemy.event.listens_for(engine, "do_connect")
    def connect(*given: Any) -> Any:
        attempts.append(given)
        raise NotTriedAgain("it is away")

    with pytest.raises(DATABASE_ERRORS, match="it is away"):
        storage.run_storage.get_runs_count()
    assert len(attempts) == 1, (
        f"dagster_postgres tries a question {len(attempts)} times where connecting raises {NotTriedAgain.__name__}: "
        "a process would take that much longer to end without its database"
    )
