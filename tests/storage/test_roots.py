"""Roots that went away are told from those that are empty, by what a real database remembers."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import s3fs

from falcon_assets.errors import RootAwayError, StorageError, UnreachableError
from falcon_assets.operations.data_roots import LedgerBook
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.template_walk import listed_names
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.renaming.publication import RenamePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.roots import MARK, RootGuard
from tests.builders import make_cluster, make_feed
from tests.s3_server import ENVIRON, KEY, SECRET, lake

ADOPT = "bring it back (is it mounted?), or, if what is there is the root from now on, run falcon admin root adopt"
UNMARKED = f"what is there does not carry its mark ({MARK}), like an empty mount point or a folder made anew"


@pytest.fixture
def book(settings: Settings) -> LedgerBook:
    return LedgerBook(settings)


def store_at(root: Path, book: LedgerBook, **options: Any) -> ClusterStore:
    """The store of a process that has just begun."""
    interfaces = {"write": {"endpoint": f"file://{root}"}, "execute": {"endpoint": "local[2]"}}
    return ClusterStore(make_cluster(interfaces=interfaces), root, {}, roots=RootGuard(book), **options)


def test_a_root_is_marked_at_first_use_and_keeps_its_mark(tmp_path: Path, book: LedgerBook) -> None:
    store_at(tmp_path, book).path("/raw")
    mark = (tmp_path / MARK).read_text()
    assert (len(mark), list(tmp_path.iterdir())) == (32, [tmp_path / MARK])
    store_at(tmp_path, book).path("/raw")
    assert (tmp_path / MARK).read_text() == mark


def test_the_mark_of_another_installation_is_shared(tmp_path: Path, book: LedgerBook) -> None:
    (tmp_path / MARK).write_text("theirs")
    store = store_at(tmp_path, book)
    store.path("/raw")
    known = book.known("primary", store.identity.place)
    assert known is not None and known.mark == "theirs"


@pytest.mark.parametrize("is_new", [False, True], ids=["in the same process", "in another one"])
def test_a_root_that_was_moved_away_is_not_made_anew(tmp_path: Path, book: LedgerBook, is_new: bool) -> None:
    root = tmp_path / "disk"
    (root / "raw").mkdir(parents=True)
    store = store_at(root, book)
    store.path("/raw")
    root.rename(tmp_path / "elsewhere")
    store = store_at(root, book) if is_new else store
    with pytest.raises(RootAwayError) as error:
        store.path("/raw")
    assert str(error.value) == f"cluster 'primary': its root {root} is away: it is not there: {ADOPT} primary"
    root.mkdir()
    with pytest.raises(RootAwayError) as error:
        kind_of(store).is_available(make_feed(), "/raw")
    assert str(error.value) == f"cluster 'primary': its root {root} is away: {UNMARKED}: {ADOPT} primary"
    assert list(root.iterdir()) == []
    root.rmdir()
    (tmp_path / "elsewhere").rename(root)
    assert store.path("/raw") == f"{root}/raw"


def test_a_root_that_goes_away_before_it_is_published_to_gets_nothing(tmp_path: Path, book: LedgerBook) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    with (
        pytest.raises(RootAwayError, match="is away"),
        RenamePublication(store_at(root, book), "key", {"out": OutputTarget("/out/1", "_SUCCESS")}) as publication,
    ):
        staging = Path(publication.staging("out"))
        root.rename(tmp_path / "elsewhere")
        staging.mkdir(parents=True)  # as a program does that writes where it was told
        (staging / "part-0").write_text("1")
        publication.commit("out")
    assert not (root / "out").exists()


def test_another_root_is_adopted_on_purpose(tmp_path: Path, book: LedgerBook) -> None:
    store = store_at(tmp_path, book)
    store.path("")
    (tmp_path / MARK).write_text("another")
    with pytest.raises(RootAwayError, match="what is there is another root: it carries the mark"):
        store_at(tmp_path, book).path("")
    guard = RootGuard(book)
    assert (guard.adopt(store.identity), guard.adopt(store.identity)) == (True, False)
    assert store.path("") == str(tmp_path)


def test_nothing_is_adopted_where_nothing_is(tmp_path: Path, book: LedgerBook) -> None:
    root = tmp_path / "root"
    root.mkdir()
    store = store_at(root, book)
    store.path("")
    shutil.rmtree(root)
    with pytest.raises(RootAwayError, match=r"there is nothing at its root .*/root to adopt: bring it back, or"):
        RootGuard(book).adopt(store.identity)
    root.mkdir()
    assert RootGuard(book).adopt(store.identity)


def test_who_is_refused_everything_adopts_nothing(
    tmp_path: Path, book: LedgerBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = store_at(tmp_path, book).identity

    def refuse(*_: object) -> None:
        raise PermissionError("InvalidAccessKeyId")

    monkeypatch.setattr(root.files.fs, "cat_file", refuse)
    for one in ("put_new", "is_empty"):
        monkeypatch.setattr(type(root.files), one, refuse)
    with pytest.raises(StorageError, match=r"cannot adopt the root .*refuses access with these credentials"):
        RootGuard(book).adopt(root)
    assert book.known(root.cluster, root.place) is None


def test_what_is_only_read_is_not_marked_and_is_away_when_it_is_empty(tmp_path: Path, book: LedgerBook) -> None:
    (tmp_path / "raw").mkdir()
    store_at(tmp_path, book, readonly=True).path("")
    assert list(tmp_path.iterdir()) == [tmp_path / "raw"]
    shutil.rmtree(tmp_path / "raw")
    with pytest.raises(RootAwayError, match="is away: it is empty, and was not before: bring it back"):
        store_at(tmp_path, book, readonly=True).path("")


def test_nothing_is_said_of_a_root_that_never_was_there(tmp_path: Path, book: LedgerBook) -> None:
    store = store_at(tmp_path / "new", book)
    assert store.path("/raw") == f"{tmp_path}/new/raw"
    assert not (tmp_path / "new").exists()


def test_buckets(s3: str, tmp_path: Path, book: LedgerBook) -> None:
    fs = s3fs.S3FileSystem(key=KEY, secret=SECRET, client_kwargs={"endpoint_url": s3}, use_listings_cache=False)

    def opened() -> ClusterStore:
        return ClusterStore(make_cluster(**lake(s3)), tmp_path, ENVIRON, roots=RootGuard(book))

    with pytest.raises(RootAwayError) as error:
        opened().path("/raw")
    said = "make it, or fix the endpoint or location that names it"
    assert str(error.value) == f"cluster 'lake': there is no s3://lake/data: {said}"
    fs.mkdir("lake")
    opened().path("/raw")
    assert fs.find("lake") == []  # it may be somebody else's
    opened().require_root(claims=True)
    assert fs.find("lake") == [f"lake/data/{MARK}"]
    opened().path("/raw")
    fs.rm("lake", recursive=True)
    fs.mkdir("lake")
    with pytest.raises(RootAwayError) as error:
        opened().path("/raw")
    assert str(error.value) == f"cluster 'lake': its root s3://lake/data is away: {UNMARKED}: {ADOPT} lake"


def test_a_store_that_does_not_answer_is_not_empty(tmp_path: Path, book: LedgerBook) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    interfaces = {"write": {"endpoint": f"webhdfs://127.0.0.1:{port}/data"}, "execute": {"endpoint": "local[2]"}}
    store = ClusterStore(make_cluster(interfaces=interfaces), tmp_path, {}, roots=RootGuard(book))
    said = f"cluster 'primary': cannot look for the root webhdfs://127.0.0.1:{port}/data: the namenode at"
    with pytest.raises(UnreachableError, match=said):
        kind_of(store).is_available(make_feed(), "/raw")
    with pytest.raises(UnreachableError, match=said):
        listed_names(store, "/raw")
