from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from tests.builders import make_cluster
from tests.properties import examples

Files = dict[str, bytes]
NAMES = st.sampled_from(["part-0", "part-1", "a/part-0", "a/b/part-0", "ab", "é", "é=_", "crc", "_k=v/x"])
FILES = st.dictionaries(NAMES, st.binary(max_size=6), max_size=6)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ClusterStore]:
    yield ClusterStore(make_cluster(), tmp_path, {})


def version_of(files: Files, order: int = 0, flag: str | None = None) -> DataVersion:
    """The version of a fresh folder that holds ``files``, made in a random order."""
    with TemporaryDirectory() as home:
        store = ClusterStore(make_cluster(), Path(home), {})
        write(store, "instance", files, order)
        return fingerprint(store, "/instance", flag)


def write(store: ClusterStore, path: str, files: Files, order: int = 0) -> Path:
    folder = Path(store.path(path))
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in random.Random(order).sample(sorted(files.items()), len(files)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@given(files=FILES, order=st.integers())
@examples(50)
def test_order_and_times_do_not_matter(files: Files, order: int) -> None:
    assert version_of(files) == version_of(files, order)


@given(files=FILES, other=FILES)
@examples(100)
def test_different_files_have_different_versions(files: Files, other: Files) -> None:
    assert (version_of(files).version == version_of(other).version) == (files == other)


@given(files=FILES, data=st.data())
@examples(60)
def test_any_change_of_a_name_a_size_or_a_byte_is_seen(files: Files, data: st.DataObject) -> None:
    assume(files)
    name = data.draw(st.sampled_from(sorted(files)))
    content = files[name]
    rest = {other: body for other, body in files.items() if other != name}
    changed = [{**rest, f"{name}x": content}, {**files, name: content + b"\0"}, rest]
    if content:
        at = data.draw(st.integers(0, len(content) - 1))
        changed.append({**files, name: content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]})
    before = version_of(files).version
    assert before not in [version_of(other).version for other in changed]


def test_the_version_is_as_it_always_was() -> None:
    # Recorded versions are compared with new ones for years: this text must never change.
    version = version_of({"part-0": b"abc", "a/part-1": b""})
    assert version == DataVersion("731af43abe2e537888cca6667618d7ac", 2, 3)


def test_flag_and_side_files_do_not_count() -> None:
    data = {"part-0": b"x", "day=1/part-1": b"y"}
    noise = {
        "_SUCCESS": b"",
        "._SUCCESS.crc": b"c",
        "_done": b"",
        "day=1/.part-1.crc": b"c",
        "_temporary/0/part-9": b"z",
        "day=1/_temporary/part-9": b"z",
    }
    assert version_of({**data, **noise}, flag="_done") == version_of(data)
    assert version_of({**data, "day=1/done": b""}, flag="done") != version_of(data)  # a flag is at the top only
    assert version_of({**data, "done": b""}) != version_of(data)


def test_an_empty_instance_has_a_version(store: ClusterStore) -> None:
    folder = write(store, "instance", {})
    empty = fingerprint(store, "instance", "_SUCCESS")
    assert (empty.files, empty.bytes, len(empty.version)) == (0, 0, 32)
    (folder / "_SUCCESS").touch()
    (folder / "sub").mkdir()
    assert fingerprint(store, "instance", "_SUCCESS") == empty


def test_a_single_file_is_an_instance_too(store: ClusterStore) -> None:
    file = write(store, "days", {"2013-01-01.csv": b"abc"}) / "2013-01-01.csv"
    before = fingerprint(store, "/days/2013-01-01.csv", None)
    assert (before.files, before.bytes) == (1, 3)
    os.utime(file, (1, 1))
    assert fingerprint(store, "/days/2013-01-01.csv", None) == before
    file.write_bytes(b"abd")
    assert fingerprint(store, "/days/2013-01-01.csv", None) != before


def test_large_files_are_read_in_blocks(store: ClusterStore) -> None:
    folder = write(store, "instance", {"part-0": b"\0" * ((5 << 20) + 1)})
    before = fingerprint(store, "instance", None)
    assert before.bytes == (5 << 20) + 1
    with (folder / "part-0").open("r+b") as file:
        file.seek(3 << 20)
        file.write(b"\1")
    assert fingerprint(store, "instance", None) != before


def test_links_inside_the_root_are_followed_and_dangling_ones_ignored(store: ClusterStore) -> None:
    shared = write(store, "shared", {"x": b"data", "sub/y": b"more"})
    folder = write(store, "linked", {})
    (folder / "x").symlink_to(shared / "x")
    (folder / "sub").symlink_to(shared / "sub")
    (folder / "gone").symlink_to("nothing")
    os.mkfifo(folder / "pipe")
    assert fingerprint(store, "linked", None) == fingerprint(store, "shared", None)


def test_links_out_and_around_are_errors(store: ClusterStore) -> None:
    folder = write(store, "instance", {"x": b""})
    (folder / "out").symlink_to("/etc/hostname")
    with pytest.raises(
        StorageError, match=r"^cluster 'primary': '/instance/out' leaves the root .* by a symbolic link$"
    ):
        fingerprint(store, "instance", None)
    (folder / "out").unlink()
    (folder / "sub").mkdir()
    (folder / "sub" / "loop").symlink_to("..")
    looping = f"cluster 'primary': {folder}/sub/loop is a symbolic link to a folder that it lies in"
    with pytest.raises(StorageError, match=f"^{re.escape(looping)}$"):
        fingerprint(store, "instance", None)


def test_nothing_has_no_version(store: ClusterStore) -> None:
    with pytest.raises(StorageError, match=r"^cluster 'primary': there is nothing at /raw/2013$"):
        fingerprint(store, "/raw/2013", None)


def test_the_version_does_not_depend_on_the_kind_of_store(store: ClusterStore) -> None:
    files = {"part-0": b"abc", "day=1/part-1": b"d", "_SUCCESS": b""}
    write(store, "instance", files)
    interfaces = {"write": {"endpoint": "memory://version-test"}, "execute": {"endpoint": "local[2]"}}
    other = ClusterStore(make_cluster(interfaces=interfaces), Path("/nowhere"), {})
    for name, content in files.items():
        other.fs.pipe_file(other.path(f"instance/{name}"), content)
    assert fingerprint(other, "instance", "_SUCCESS") == fingerprint(store, "instance", "_SUCCESS")
