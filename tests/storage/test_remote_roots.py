"""Roots on stores of the network that went away are told from those that are empty."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
import requests

from falcon_assets.errors import RootAwayError
from falcon_assets.model.cluster import Cluster
from falcon_assets.operations.data_roots import LedgerBook
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import KeptAs, OutputTarget
from falcon_assets.storage.roots import MARK, RootGuard
from tests.builders import make_cluster, make_feed
from tests.hdfs_server import Hdfs, on_hdfs
from tests.storage.kinds.samples import CLOUDS, FIRST

pytestmark = pytest.mark.soak
OUT = OutputTarget("/out/1", "_SUCCESS")
UNMARKED = f"what is there does not carry its mark ({MARK}), like an empty mount point or a folder made anew"


def opened(cluster: Cluster, settings: Settings) -> ClusterStore:
    """The store of a process that has just begun."""
    return ClusterStore(cluster, settings.home, {}, roots=RootGuard(LedgerBook(settings)))


def publish(store: ClusterStore) -> None:
    with kind_of(store).publish("key", {"out": OUT}) as publication:
        store.fs.pipe_file(f"{publication.staging('out')}/part-0", b"1")
        publication.commit("out")


@pytest.fixture
def on_nodes(hdfs: Hdfs) -> Cluster:
    return make_cluster(**on_hdfs(hdfs, root=f"roots/{uuid.uuid4().hex}"))


def test_a_root_on_hdfs_is_marked_and_is_away_when_it_was_moved(on_nodes: Cluster, settings: Settings) -> None:
    store = opened(on_nodes, settings)
    root, fs = store.identity.path, store.fs
    assert not kind_of(store).is_available(make_feed(), "/out/1")  # nothing was ever there
    publish(store)
    publish(store)
    assert len(fs.cat_file(f"{root}/{MARK}")) == 32
    fs.mv(root, f"{root}.elsewhere")
    with pytest.raises(RootAwayError, match=r"is away: it is not there: bring it back"):
        publish(store)
    with pytest.raises(RootAwayError, match=r"is away: it is not there: bring it back"):
        kind_of(opened(on_nodes, settings)).is_available(make_feed(), "/out/1")
    assert not fs.exists(root)
    fs.mkdir(root)
    for one in (store, opened(on_nodes, settings)):
        with pytest.raises(RootAwayError) as error:
            publish(one)
        assert f"its root {store.identity.shown} is away: {UNMARKED}" in str(error.value)
    assert fs.ls(root) == []
    fs.rm(root)
    fs.mv(f"{root}.elsewhere", root)
    publish(store)


def test_what_is_computed_for_a_root_that_was_moved_is_not_published(on_nodes: Cluster, settings: Settings) -> None:
    store = opened(on_nodes, settings)
    publish(store)
    root, fs = store.identity.path, store.fs
    with (
        pytest.raises(RootAwayError, match="is away"),
        kind_of(store).publish("key", {"out": OUT}) as publication,
    ):
        fs.mv(root, f"{root}.elsewhere")
        fs.pipe_file(f"{publication.staging('out')}/part-0", b"2")  # as a program does that writes where it was told
        publication.commit("out")
    assert not fs.exists(f"{root}/out")


def test_a_publication_looks_for_its_root_once(on_nodes: Cluster, settings: Settings) -> None:
    store = opened(on_nodes, settings)
    keeps = OutputTarget("/out/1", "_SUCCESS", keeps=KeptAs("out", FIRST))
    request, looks = store.fs.session.request, list[str]()

    def asked(method: str, url: str, **others: Any) -> requests.Response:
        if url.endswith(MARK):
            looks.append(others["params"]["op"])
        answer: requests.Response = request(method, url, **others)
        return answer

    store.fs.session.request = asked
    publish(store)
    assert store.fs.exists(f"{store.identity.path}/{MARK}")  # however fast that was
    for content in (b"2", b"1", b"2"):  # from the second on, what was kept is the present one again
        looks.clear()
        with kind_of(store).publish("key", {"out": keeps}) as publication:
            store.fs.pipe_file(f"{publication.staging('out')}/part-0", content)
            publication.commit("out")
        assert looks == ["OPEN"]


def test_nothing_went_from_a_root_that_was_moved(on_nodes: Cluster, settings: Settings) -> None:
    store = opened(on_nodes, settings)
    publish(store)
    root, fs = store.identity.path, store.fs
    location = StoredLocation("data", "/out/1", "/out")
    removal = kind_of(store).removal("_SUCCESS")
    with pytest.raises(RootAwayError, match="is away"), removal.held(location) as place:
        fs.mv(root, f"{root}.elsewhere")
        removal.remove(location, place)
    assert not fs.exists(root)


def test_what_is_only_read_is_not_marked_and_is_away_when_it_is_not_there(
    on_nodes: Cluster, settings: Settings
) -> None:
    store = opened(on_nodes, settings)
    root, fs = store.identity.path, store.fs
    fs.pipe_file(f"{root}/raw/file", b"")

    def reading() -> ClusterStore:
        return ClusterStore(on_nodes, settings.home, {}, readonly=True, roots=RootGuard(LedgerBook(settings)))

    reading().path("/raw")
    assert fs.ls(root) == [f"{root}/raw"]
    fs.rm(root, recursive=True)
    with pytest.raises(RootAwayError, match="is away: it is not there"):
        reading().path("/raw")
    fs.mkdir(root)
    with pytest.raises(RootAwayError, match="is away: it is empty, and was not before"):
        reading().path("/raw")


def test_a_root_of_before_there_were_marks_is_away_where_instances_are_known_to_be_in_it(
    on_nodes: Cluster, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(on_nodes, settings)
    asked = list[str]()
    monkeypatch.setattr(LedgerBook, "has_data", lambda _, cluster, begins: bool(asked.append(begins) or begins))
    with pytest.raises(RootAwayError, match="is away: it is empty, and instances are known to be in it"):
        store.path("/raw")
    monkeypatch.undo()
    assert {f"{one}/raw" for one in asked} == {store.shown("/raw")}  # as places are recorded


@pytest.mark.parametrize("scheme", CLOUDS)
def test_containers(request: pytest.FixtureRequest, settings: Settings, scheme: str) -> None:
    bucket = f"roots-{uuid.uuid4()}"
    interfaces = {"write": {"endpoint": f"{scheme}://{bucket}/data"}, "execute": {"endpoint": "local[2]"}}
    cluster = make_cluster(interfaces=interfaces, storage_options=request.getfixturevalue(scheme))
    with pytest.raises(RootAwayError, match=f"there is no {scheme}://{bucket}/data: make it, or fix"):
        kind_of(opened(cluster, settings)).is_available(make_feed(), "/out/1")
    store = opened(cluster, settings)
    store.fs.mkdir(bucket)
    opened(cluster, settings).path("/raw")
    assert store.fs.find(bucket) == []  # it may be somebody else's
    with kind_of(store).publish("key", {"out": OUT}) as publication:
        store.fs.pipe_file(f"{publication.staging('out')}/part-0", b"1")
        publication.commit("out")
    assert store.fs.exists(f"{bucket}/data/{MARK}")
    for name in store.fs.find(bucket):
        store.fs.rm_file(name)
    with pytest.raises(RootAwayError, match="does not carry its mark"):
        opened(cluster, settings).path("/raw")
    store.fs.rmdir(bucket)
    with pytest.raises(RootAwayError, match="is away: it is not there"):
        opened(cluster, settings).path("/raw")
