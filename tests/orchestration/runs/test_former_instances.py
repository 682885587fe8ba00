"""What an earlier definition made is lost by no instance of the present one, in whose folder it lies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert

from falcon_assets.errors import StorageError
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import DATA_VERSIONS
from falcon_assets.instances.store.former_instances import (
    FormerInstances,
    HoldsFormer,
    former_places,
    holds_former,
    lying_within,
)
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import make_cluster, make_feed

DAY = datetime(2013, 1, 2, tzinfo=UTC)
PLACES = [(f"/data/2013/01/02{below}", DAY) for below in ("", "/01", "/02")] + [("/data/2013/01/020/01", DAY)]


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("/data/2013/01/02", PLACES[:3]),
        ("/data/2013/01/02/01", PLACES[1:2]),
        ("/data/2013/01", PLACES),
        ("/data/2013/01/0", []),
        ("/data/2013/01/03", []),
    ],
)
def test_what_lies_within(folder: str, found: list[tuple[str, datetime]]) -> None:
    assert lying_within(folder, sorted(PLACES)) == sorted(found)


@pytest.fixture
def ledger(settings: Settings, instance: object) -> Ledger:
    return open_ledger(settings, instance)  # type: ignore[arg-type]


def test_hours_that_lie_in_the_folder_of_a_day_are_not_replaced(ledger: Ledger, tmp_path: Path) -> None:
    store = ClusterStore(make_cluster(), tmp_path, {})
    feed = make_feed(name="former", frequency="days(1)", locations={"data": "/out/${YEAR}/${MONTH}/${DAY}"})
    day, hour = "/out/2013/01/02", DAY + timedelta(hours=1)
    lies = store.shown(f"{day}/01")
    known = {"cluster": "primary", "feed": "former", "event_id": 1, "status": "AVAILABLE", "late": False}
    rows = [
        {**known, "instance": DAY, "version": "own", "id": -1, "path": store.shown(f"{day}/00")},
        {**known, "instance": hour, "version": "v", "id": -2, "path": lies},
    ]
    with ledger.engine.begin() as connection:
        connection.execute(insert(DATA_VERSIONS), rows)
    FormerInstances(ledger).require_apart(store, feed, DAY, day)  # whoever has moved it away has decided
    store.fs.makedirs(lies)
    with pytest.raises(StorageError) as told:
        FormerInstances(ledger).require_apart(store, feed, DAY, day)
    assert str(told.value) == (
        "cluster 'primary': instance 2013-01-02T00:00Z of former would overwrite data that is not its own: "
        f"{lies}, in its folder, is instance 2013-01-02T01:00Z of an earlier definition: give the feed another path "
        "or its former frequency, or move that data away"
    )
    line = feed_timeline(feed, "primary")
    with ledger.engine.connect() as connection:
        places = former_places(connection, "primary", "former", line, line.start, line.end)
    assert places == [(lies, hour)]
    assert holds_former(store, day, places) == HoldsFormer(hour, lies)
    assert holds_former(store, "/out/2013/01/03", places) is None
    hourly = make_feed(name="former")  # the frequency is written as it was: all are its own
    FormerInstances(ledger).require_apart(store, hourly, hour, f"{day}/01")
