from __future__ import annotations

import re
from pathlib import Path

import pytest

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.errors import InvalidDefinitionsError, MissingDefinitionsError, UnknownEntityError
from tests.catalog.definition_files import FILES, load


@pytest.fixture
def store(tmp_path: Path) -> EntityStore:
    return load(tmp_path, FILES)


def test_entities_by_name(store: EntityStore) -> None:
    assert store.cluster("backup").colo == "west"
    assert store.feed("raw").partitions == ("carrier",)
    assert store.process("hourly").outputs[0].feed == "delays"


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        pytest.param("cluster", "primry", "there is no cluster 'primry' (did you mean 'primary'?)", id="cluster"),
        pytest.param("feed", "xyz", "there is no feed 'xyz'; there is: raw, delays", id="feed"),
        pytest.param("process", "Hourly", "there is no process 'Hourly' (did you mean 'hourly'?)", id="process"),
    ],
)
def test_unknown_names(store: EntityStore, kind: str, name: str, message: str) -> None:
    with pytest.raises(UnknownEntityError, match=f"^{re.escape(message)}$"):
        getattr(store, kind)(name)


def test_positions(store: EntityStore, tmp_path: Path) -> None:
    entities = [store.cluster("backup"), store.feed("delays"), store.process("hourly")]
    assert [str(store.position(entity)).replace(f"{tmp_path}/", "") for entity in entities] == [
        "clusters.yaml:6",
        "feeds.yaml:17",
        "processes.yaml:1",
    ]


def test_producers(store: EntityStore) -> None:
    assert [process.name for process in store.producers("delays", "primary")] == ["hourly"]
    assert store.producers("delays", "backup") == store.producers("raw", "primary") == ()


def test_clusters_of_feeds_and_processes(store: EntityStore) -> None:
    assert [(cluster.colo, entry.type) for cluster, entry in store.feed_clusters(store.feed("raw"))] == [
        ("east", "source"),
        ("west", "target"),
    ]
    assert [cluster.name for cluster, _ in store.process_clusters(store.process("hourly"))] == ["primary"]


def test_colo_keeps_what_is_there(store: EntityStore) -> None:
    west = store.in_colo("west")
    assert (list(west.clusters), list(west.feeds), list(west.processes)) == (["backup"], ["raw"], [])
    assert [cluster.name for cluster, _ in west.feed_clusters(west.feed("raw"))] == ["backup"]
    (writer,) = store.in_colo("east").producers("delays", "primary")
    assert writer.entity is store.process("hourly")
    assert store.in_colo(None) is store


def test_what_is_critical_in_another_colo_is_known(tmp_path: Path) -> None:
    """It may have been made from what lies here."""
    critical = FILES["feeds.yaml"].replace("name: delays\n", "name: delays\nlifecycle_status: critical\n")
    west = load(tmp_path, {**FILES, "feeds.yaml": critical}).in_colo("west")
    assert (list(west.feeds), west.critical) == (["raw"], {"delays"})


def test_unknown_colo(store: EntityStore) -> None:
    with pytest.raises(UnknownEntityError, match=r"^no cluster has the colo 'wset' \(did you mean 'west'\?\)$"):
        store.in_colo("wset")


def test_missing_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        MissingDefinitionsError, match=r"^there is no folder defs: it should hold the entity definitions$"
    ):
        load_entities(Path("defs"))


def test_a_file_instead_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("defs.zip").touch()
    with pytest.raises(MissingDefinitionsError, match=r"^defs\.zip is not a folder: set the folder with the entity"):
        load_entities(Path("defs.zip"))


def test_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("defs").mkdir()
    message = r"^there is no entity definition \(\*\.yaml, \*\.yml\) in the folder defs$"
    with pytest.raises(MissingDefinitionsError, match=message):
        load_entities(Path("defs"))


def test_error_text_holds_every_problem_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidDefinitionsError) as caught:
        load(Path(), {"a.yaml": "kind: cluster\nname: 1x\n", "b.yaml": "kind: fed\n"})
    assert str(caught.value) == (
        "a.yaml:1: interfaces: required key is missing\n"
        "    kind: cluster\n"
        "    ^\n"
        "a.yaml:2: name: '1x' is not legal: write a letter, then letters, digits, '-' or '_', 39 characters at most\n"
        "    name: 1x\n"
        "          ^\n"
        "b.yaml:1: kind: unknown kind 'fed' (did you mean 'feed'?)\n"
        "    kind: fed\n"
        "          ^\n"
        "3 problems in the entity definitions"
    )
