"""HDFS fulfils the contract of storage, too, in files and in tables, by a real namenode and datanode."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.kinds.samples import ON_HDFS, Sample, sample
from tests.storage.kinds.test_contract import *  # noqa: F403

pytestmark = pytest.mark.soak


@pytest.fixture(params=["hdfs", f"hive{ON_HDFS}"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return sample(request, request.param, tmp_path)
