"""Requested reruns as coordinators read them, while others serve and forget them."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, delete, event, insert

from falcon_assets.history.tables import PROCESS_INSTANCES, RERUNS
from falcon_assets.instances.store.reruns import request, requested
from falcon_assets.planning.instance_record import InstanceState, RerunRequest
from tests.hours import hour
from tests.operations.rows import process_row


@pytest.mark.parametrize("statements", [1, 2])
def test_one_that_is_forgotten_meanwhile_is_served_or_not_there(engine: Engine, statements: int) -> None:
    """After so many statements of the reader; it was taken for one of an instance that nobody had tried."""
    with engine.begin() as connection:
        for table in (PROCESS_INSTANCES, RERUNS):
            connection.execute(delete(table))
        connection.execute(insert(PROCESS_INSTANCES), [process_row("clean", 1, "SUCCEEDED", attempt=2)])
        request(connection, {("clean", "primary", hour(1)): RerunRequest("LATE", 1, 0, hour(2))})
    executed = []
    with engine.connect() as reader:

        @event.listens_for(reader, "after_cursor_execute")
        def forget(*_: object) -> None:
            executed.append(None)
            if len(executed) == statements:
                with engine.begin() as other:
                    other.execute(delete(RERUNS))

        found = requested(reader, {"primary"})
    assert len(executed) >= statements
    assert [one.record.state for one in found] in ([], [InstanceState.SUCCEEDED])
