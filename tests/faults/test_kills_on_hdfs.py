"""Everything is killed at random moments of two simulated weeks whose data lies on a real HDFS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.faults.installation import Site
from tests.faults.test_kills import *  # noqa: F403
from tests.faults.test_kills import Survived, pytestmark
from tests.hdfs_server import Hdfs, hdfs_server, on_hdfs
from tests.simulation.declared import entities
from tests.simulation.ground import WEBHDFS
from tests.simulation.scenario import BACKUP, PRIMARY

__all__ = ["pytestmark"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """Of its own: where a name is taken down, those of others stay."""
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="module")
def declare(place: Site, nodes: Hdfs) -> Callable[..., str]:
    """Says what is declared: each cluster has a folder."""
    place.environ[WEBHDFS] = nodes.http  # no service has started yet

    def declared(cluster: str) -> dict[str, Any]:
        return on_hdfs(nodes, cluster, root=f"weeks/{cluster}")

    return partial(entities, place=declared)


@pytest.mark.parametrize("cluster", [PRIMARY, BACKUP])
def test_what_hadoops_own_client_sees_is_whole(survived: Survived, nodes: Hdfs, cluster: str) -> None:
    """Every instance has its flag and one file, and nothing of what was killed is left beside them."""
    listed = nodes.dfs("-ls", "-R", f"/weeks/{cluster}").splitlines()
    found: dict[str, set[str]] = {}
    for line in listed:
        *_, path = line.split()
        if line.startswith("-"):
            folder, _, name = path.rpartition("/")
            found.setdefault(folder, set()).add(name)
    data = {folder: names for folder, names in found.items() if "/." not in folder and not folder.endswith(cluster)}
    assert data
    broken = {folder: names for folder, names in data.items() if "_SUCCESS" not in names or len(names) < 2}
    assert broken == {}
