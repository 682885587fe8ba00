"""The two simulated weeks with all data on a real S3 server, where some of the feeds keep versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from tests.builders import make_cluster
from tests.s3_server import ENVIRON, lake, s3_server
from tests.simulation.declared import entities
from tests.simulation.player import Player
from tests.simulation.scenario import BACKUP, PRIMARY
from tests.simulation.test_two_weeks import *  # noqa: F403
from tests.simulation.test_two_weeks import pytestmark

__all__ = ["pytestmark"]
KEEP = ("cleaned", "daily", "audited")


@pytest.fixture(scope="module")
def settings(settings: Settings) -> Iterator[Settings]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in ENVIRON.items():
            environment.setenv(name, value)
        yield replace(settings, environ={**settings.environ, **ENVIRON})


@pytest.fixture(scope="module")
def declare(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Says what is declared: each cluster has a bucket."""
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        for bucket in (PRIMARY, BACKUP):
            ClusterStore(make_cluster(**lake(url, bucket, bucket)), settings.home, ENVIRON).fs.mkdir(bucket)
        yield partial(entities, place=lambda cluster: lake(url, cluster, cluster), keep=KEEP)


def test_what_was_replaced_is_kept(player: Player) -> None:
    cluster = player.store.cluster(PRIMARY)
    kind = kind_of(ClusterStore(cluster, player.settings.home, player.settings.environ))
    assert all(kind.kept_versions(feed) for feed in KEEP)
    assert kind.kept_versions("reports") == []
