"""Everything is killed at random moments of two simulated weeks whose data lies on a real S3 server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import make_cluster
from tests.faults.installation import Site
from tests.faults.test_kills import *  # noqa: F403
from tests.faults.test_kills import pytestmark
from tests.s3_server import ENVIRON, lake, s3_server
from tests.simulation.declared import entities
from tests.simulation.scenario import BACKUP, PRIMARY

__all__ = ["pytestmark"]


@pytest.fixture(scope="module")
def declare(place: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Says what is declared: each cluster has a bucket."""
    place.environ.update(ENVIRON)  # no service has started yet
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        for bucket in (PRIMARY, BACKUP):
            ClusterStore(make_cluster(**lake(url, bucket, bucket)), place.home, ENVIRON).fs.mkdir(bucket)
        yield partial(entities, place=lambda cluster: lake(url, cluster, cluster))
