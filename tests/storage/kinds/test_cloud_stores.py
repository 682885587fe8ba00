"""Google's and Azure's object stores fulfil the contract of storage, too, by fsspec's drivers; Spark is not asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cloud_servers import azure_storage, google_storage
from tests.storage.kinds.samples import CLOUDS, Sample, sample
from tests.storage.kinds.test_contract import *  # noqa: F403

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def gs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with google_storage(tmp_path_factory.mktemp("gs")) as options, pytest.MonkeyPatch.context() as environment:
        # gcsfs would ask another service, which the server does not have, what kind of bucket it is.
        environment.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        yield options


@pytest.fixture(scope="module")
def abfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with azure_storage(tmp_path_factory.mktemp("abfs")) as options:
        yield options


@pytest.fixture(params=CLOUDS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return sample(request, request.param, tmp_path)
