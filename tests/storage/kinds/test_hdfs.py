"""HDFS fulfils the contract of storage, too, in files and in tables, by a real namenode and datanode."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.hdfs_server import Hdfs
from tests.storage.kinds.samples import ON_HDFS, Sample, sample
from tests.storage.kinds.test_contract import *  # noqa: F403

pytestmark = pytest.mark.soak


@pytest.fixture(params=["hdfs", f"volumes{ON_HDFS}", f"hive{ON_HDFS}"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return sample(request, request.param, tmp_path)


def test_volumes_on_one_hdfs_are_chosen_by_what_their_quotas_leave(
    request: pytest.FixtureRequest, hdfs: Hdfs, tmp_path: Path
) -> None:
    stored = sample(request, f"volumes{ON_HDFS}", tmp_path)
    stored.publish(1)
    small, big = (one.partition(hdfs.url)[2] for one in stored.cluster.interfaces.write.endpoints)

    def lies(day: int) -> list[str]:
        found = (hdfs.ask("LISTSTATUS", quote(f"{one}{stored.path(day)}")).ok for one in (small, big))
        return [one for one, is_there in zip((small, big), found, strict=True) if is_there]

    assert lies(1) == [big]
    above = quote(big.rpartition("/")[0])  # the quota of a folder above counts for both, that of the volume for it
    assert hdfs.ask("SETQUOTA", above, "put", storagespacequota=1 << 34).ok
    assert hdfs.ask("SETQUOTA", quote(big), "put", storagespacequota=1 << 29).ok
    stored.publish(2, day=2)
    stored.publish(3, day=1)
    assert (lies(1), lies(2), stored.numbers(1), stored.numbers(2)) == ([big], [small], [3], [2])
