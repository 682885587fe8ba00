"""A rerun with other properties: what is kept of it, and who is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from falcon_assets.errors import QueryError
from falcon_assets.history.tables import AUDIT
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.store.reruns import with_properties
from falcon_assets.instances.views.details import instance_details
from falcon_assets.instances.views.query import InstanceQuery
from tests.hours import hour
from tests.ledger.histories import empty
from tests.operations.entities import RETAINED
from tests.operations.opening import OpenAt
from tests.operations.rows import process_row, write

FAILED = InstanceRequest(InstanceQuery("reader", start=hour(1)), reason="why token=hush")
TOLD = {"factor": "${cluster.name}", "api_token": "{env: HUSH}"}


def test_they_are_kept_for_the_run_and_shown_without_secrets(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    write_entities({"all.yaml": RETAINED, "a.sql": "SELECT 1"})
    with open_at("2013-01-01T05:30Z") as opened:
        empty(opened.ledger.engine)
        write(opened, process_row("reader", 1, "FAILED", failures=9))
        done = rerun_instances(opened, FAILED, RerunOptions(properties=TOLD))
        assert done.changed == 1
        with opened.ledger.engine.connect() as connection:
            kept = with_properties(connection, "reader", "primary")
            said = connection.execute(select(AUDIT.c.reason)).scalars().one()
        assert kept[hour(1)].properties == (("api_token", "{env: HUSH}"), ("factor", "${cluster.name}"))
        assert said == kept[hour(1)].reason == "why token=***** (with api_token={env: HUSH}, factor=${cluster.name})"
        told = instance_details(opened, "reader", hour(1)).params()
        assert (told["params"]["factor"], told["params"]["api_token"]) == ("primary", "*****")
        # Asked for without them, it runs without them.
        assert rerun_instances(opened, FAILED, RerunOptions()).changed == 1
        with opened.ledger.engine.connect() as connection:
            assert with_properties(connection, "reader", "primary") == {}
        with pytest.raises(QueryError, match=r"^property 'nominalTime' identifies the instance"):
            rerun_instances(opened, FAILED, RerunOptions(properties={"nominalTime": "x"}))
