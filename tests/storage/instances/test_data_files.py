from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.copying.listed_files import list_files
from falcon_assets.storage.instances.data_files import is_data, is_hidden, shown
from falcon_assets.storage.instances.data_version import count_files
from falcon_assets.storage.instances.instance_files import list_instance
from tests.builders import make_cluster
from tests.properties import examples

DATA = [
    "x",
    "é",
    "a b",
    "100%41",
    "x,y",
    "g[ab]",
    "{x}",
    "*?",
    "back\\slash",
    "k=_v",
    "_k=v",
    "bad\udcff",
    "x._COPYING",
    "a:b",
]
HIDDEN = ["_SUCCESS", "_temporary", "_metadata", "_é", ".x", ".k=v", "x._COPYING_", "._x.crc"]
NAMES = st.sampled_from([*DATA, *HIDDEN, "DONE"])
TREES = st.lists(st.lists(NAMES, min_size=1, max_size=3).map(tuple), max_size=8)


@pytest.mark.parametrize("name", DATA)
def test_data(name: str) -> None:
    assert is_data(name, "DONE") and is_data(f"{name}/{name}", "DONE") and is_data(f"{name}/DONE", "DONE")


@pytest.mark.parametrize("name", HIDDEN)
def test_what_spark_hides_is_no_data(name: str) -> None:
    assert is_hidden(name)
    assert not any(is_data(path, None) for path in (name, f"sub/{name}", f"{name}/x", f"a/{name}/b/x"))


def test_the_flag_is_no_data_at_the_top() -> None:
    assert not is_data("DONE", "DONE")
    assert is_data("DONE", None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain é.json", "plain é.json"),
        ("bad\udcff.json", "bad\\xff.json"),
        ("two\nlines\x1b[0m", "two\\nlines\\x1b[0m"),
    ],
)
def test_names_are_shown_so_that_every_log_can_hold_them(name: str, text: str) -> None:
    assert shown(name) == text


@given(tree=TREES)
@examples(150)
def test_everybody_counts_the_same_files(tree: list[tuple[str, ...]]) -> None:
    with TemporaryDirectory() as home:
        store = ClusterStore(make_cluster(), Path(home), {})
        base = Path(store.path("instance"))
        base.mkdir(parents=True)
        for steps in tree:
            plant(base, steps)
        expected = {name: len(os.fsencode(name)) for name in everything(base) if is_expected(name)}
        version, files = count_files(store, "/instance", "DONE")
        assert files.sizes == files.listed_now() == expected
        assert (version.files, version.bytes) == (len(expected), sum(expected.values()))
        listed = list_files(store, "/instance", "DONE")
        assert {name: file.size for name, file in listed.items()} == expected
        before = list_instance(store, "/instance", "DONE")
        for name in everything(base) - expected.keys():
            (base / name).unlink()
        assert list_instance(store, "/instance", "DONE").signature == before.signature
        assert count_files(store, "/instance", "DONE")[0] == version
        assert all(isinstance(file, ListedFile) for file in listed.values())


def plant(base: Path, steps: tuple[str, ...]) -> None:
    """A file that holds its own path, unless something else is in its way."""
    file = base.joinpath(*steps)
    if file.is_dir() or any((base.joinpath(*steps[:depth])).is_file() for depth in range(1, len(steps))):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(os.fsencode("/".join(steps)))


def everything(base: Path) -> set[str]:
    return {os.path.relpath(Path(parent, name), base) for parent, _, names in os.walk(base) for name in names}


def is_expected(name: str) -> bool:
    """The rule, said once more in the words of the lists above."""
    steps = name.split("/")
    return not set(steps) & set(HIDDEN) and name != "DONE"
