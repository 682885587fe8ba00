"""HDFS fulfils the contract of storage, too, by a real namenode and datanode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hdfs_server import Hdfs, hdfs_server
from tests.storage.kinds.samples import Sample, sample
from tests.storage.kinds.test_contract import *  # noqa: F403

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(params=["hdfs"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return sample(request, request.param, tmp_path)
