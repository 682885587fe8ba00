from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import make_cluster


def store_at(home: Path, **overrides: Any) -> ClusterStore:
    return ClusterStore(make_cluster(**overrides), home, {})


def with_endpoint(endpoint: str) -> dict[str, Any]:
    return {"interfaces": {"write": {"endpoint": endpoint}, "execute": {"endpoint": "local[2]"}}}


def test_a_bare_endpoint_lies_below_home(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    assert store.path("/raw/2013/01") == f"{tmp_path}/data/primary/raw/2013/01"
    assert store.path("raw//./2013/") == f"{tmp_path}/data/primary/raw/2013"
    assert store.path("") == f"{tmp_path}/data/primary"
    assert store.staging == f"{tmp_path}/data/primary/.falcon/staging"
    assert store.working == f"{tmp_path}/data/primary/.falcon/working"
    assert store.url("/raw/a b%20") == f"file://{tmp_path}/data/primary/raw/a b%20"
    assert repr(store) == f"ClusterStore('primary', file://{tmp_path}/data/primary)"


def test_the_scratch_space_of_an_object_store_is_on_this_machine(tmp_path: Path) -> None:
    store = store_at(tmp_path, **with_endpoint("s3://lake/data"))
    assert store.working == f"{tmp_path}/working/primary"
    assert store.staging == "lake/data/.falcon/staging"


def test_a_file_url_is_taken_as_it_is(tmp_path: Path) -> None:
    store = store_at(Path("/nowhere"), **with_endpoint(f"file://{tmp_path}/lake"))
    assert store.path("/raw") == f"{tmp_path}/lake/raw"


def test_the_root_may_be_the_root_of_the_file_system() -> None:
    store = store_at(Path("/nowhere"), **with_endpoint("file:///"))
    assert store.path("usr") == "/usr"
    assert store.path("") == "/"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    assert store_at(tmp_path).path("raw") == f"{tmp_path}/disk/primary/raw"


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        pytest.param(
            "file://data/x",
            "cluster 'primary': the write endpoint file://data/x needs three slashes: file:///folder",
            id="host in a file url",
        ),
        pytest.param(
            "nosuch://bucket/x",
            "cluster 'primary': 'nosuch' of the write endpoint nosuch://bucket/x is not a known file system",
            id="unknown scheme",
        ),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_an_error(tmp_path: Path, endpoint: str, message: str) -> None:
    with pytest.raises(StorageError, match=f"^{re.escape(message)}$"):
        store_at(tmp_path, **with_endpoint(endpoint))


def test_a_missing_variable_names_cluster_option_and_variable(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as raised:
        store_at(tmp_path, storage_options={"key": {"env": "LAKE_KEY"}})
    assert str(raised.value) == (
        "cluster 'primary': storage option 'key' needs the environment variable LAKE_KEY, which is not set"
    )


def test_options_reach_the_file_system_and_nobody_else(tmp_path: Path) -> None:
    cluster = make_cluster(
        storage_options={"token": {"env": "LAKE_TOKEN"}, "auto_mkdir": True}, **with_endpoint(f"file://{tmp_path}")
    )
    store = ClusterStore(cluster, tmp_path, {"LAKE_TOKEN": "s3cr3t"})
    assert store.fs.storage_options["token"] == "s3cr3t"
    assert store.fs.auto_mkdir is True
    assert "s3cr3t" not in f"{store!r} {store} {store.fs!r} {vars(store)!r}"


def test_an_error_of_the_driver_does_not_pass_secrets_on(tmp_path: Path) -> None:
    # A real driver, called with an argument that it refuses.
    cluster = make_cluster(
        storage_options={"fo": {"env": "LAKE_TOKEN"}}, **with_endpoint("zip://user:s3cr3t@host/x.zip")
    )
    with pytest.raises(StorageError) as raised:
        ClusterStore(cluster, tmp_path, {"LAKE_TOKEN": "/s3cr3t/no-such.zip"})
    assert str(raised.value) == (
        "cluster 'primary': cannot open zip://host/x.zip (FileNotFoundError); check its endpoint and storage_options"
    )
    assert raised.value.__suppress_context__
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("path", ["..", "/../x", "raw/../../x", "raw/..", "a\0b"])
def test_dots_do_not_leave_the_root(tmp_path: Path, path: str) -> None:
    with pytest.raises(StorageError) as raised:
        store_at(tmp_path).path(path)
    assert str(raised.value) == f"cluster 'primary': {path!r} leaves the root file://{tmp_path}/data/primary"


def test_links_do_not_leave_the_root(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    root = tmp_path / "data" / "primary"
    (root / "inside").mkdir(parents=True)
    (tmp_path / "data" / "primary-2").mkdir()
    (root / "link").symlink_to("inside")
    (root / "dangling").symlink_to("nothing")
    (root / "out").symlink_to(tmp_path)
    (root / "sibling").symlink_to("../primary-2")
    assert store.path("link/x") == f"{root}/link/x"
    assert store.path("dangling") == f"{root}/dangling"
    for path in ("out", "out/x/y", "link/../out", "sibling/x"):
        with pytest.raises(StorageError):
            store.path(path)
    with pytest.raises(StorageError) as raised:
        store.path("out/x")
    assert str(raised.value) == (
        f"cluster 'primary': 'out/x' leaves the root file://{tmp_path}/data/primary by a symbolic link"
    )


STEPS = st.sampled_from(["", ".", "..", "a", "b", "up", "loop", "in", "~", "...", "a b", "$HOME", "é", "\udcff"])


@pytest.fixture(scope="module")
def tangled(tmp_path_factory: pytest.TempPathFactory) -> ClusterStore:
    """A root with links up and out, in circles and inside."""
    store = store_at(tmp_path_factory.mktemp("home"))
    root = Path(store.path(""))
    (root / "a" / "b").mkdir(parents=True)
    (root / "up").symlink_to("..")
    (root / "a" / "up").symlink_to("..")
    (root / "a" / "b" / "up").symlink_to("../../..")
    (root / "loop").symlink_to("loop")
    (root / "in").symlink_to("a/b")
    return store


@given(steps=st.lists(STEPS, max_size=6), leading=st.sampled_from(["", "/", "//"]))
def test_no_path_ever_leaves_the_root(tangled: ClusterStore, steps: list[str], leading: str) -> None:
    root = Path(tangled.path(""))
    relative = leading + "/".join(steps)
    try:
        path = Path(tangled.path(relative))
    except StorageError:
        return
    assert path.is_relative_to(root)
    assert path.parts == (*root.parts, *(step for step in steps if step not in ("", ".")))
    if "loop" not in steps:
        assert path.resolve().is_relative_to(root)


def test_a_root_of_its_own(tmp_path: Path) -> None:
    """Of a location that is a whole URL: nothing leaves it, and it is staged where it lies."""
    outside = tmp_path / "outside"
    (outside / "a b").mkdir(parents=True)
    (outside / "a b/out").symlink_to(tmp_path)
    cluster = make_cluster(locations={"staging": "/elsewhere"})
    own = ClusterStore(cluster, tmp_path / "home", {})
    store = own.at(f"file://{outside}/a b")
    assert (store.path("/2013"), store.shown("/2013")) == (f"{outside}/a b/2013", f"file://{outside}/a b/2013")
    assert (store.staging, own.staging) == (f"{outside}/a b/.falcon/staging", own.path("/elsewhere"))
    for path in ("../x", "out/x"):
        with pytest.raises(StorageError, match="leaves the root"):
            store.path(path)
    assert store.at(store.root) is store
    assert store.at(None).path("") == own.path("")
    assert own.shown("/2013") == own.path("/2013")


def test_a_root_of_its_own_is_opened_with_its_own_options(tmp_path: Path) -> None:
    """Those of the cluster are not even looked up."""
    cluster = make_cluster(storage_options={"token": {"env": "NOT_SET"}})
    options = {"token": "mine"}
    root = f"file://{tmp_path}"
    store = ClusterStore(cluster, tmp_path, {}, root=root, options=options)
    assert store.fs.storage_options["token"] == "mine"
    with pytest.raises(StorageError, match="NOT_SET"):
        store.at(None)
    with pytest.raises(StorageError, match="NOT_SET"):
        ClusterStore(cluster, tmp_path, {}, root=root)
    assert "mine" not in f"{store!r} {vars(store)!r}"
