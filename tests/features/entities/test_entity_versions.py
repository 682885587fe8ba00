"""History of definitions: what commands record, differences, and going back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from falcon_assets.entities.workflow_contents import kept_files
from falcon_assets.errors import DefinitionStoreError, EntityInUseError, InvalidDefinitionsError, UnknownEntityError
from falcon_assets.features.entities.changing import delete, submit, touch, update
from falcon_assets.features.entities.versions import entity_diff, entity_history, restore_entity
from falcon_assets.history.database import upgrade
from falcon_assets.operations.installation import Installation, open_installation
from tests.features.entities.trees import (
    BACKUP,
    DELAYS,
    HOURLY,
    PRIMARY,
    RAW,
    content,
    installation_of,
    request,
    settings_of,
    written,
)
from tests.ledger.histories import empty

SHORTER = RAW.replace("days(90)", "days(80)")


@pytest.fixture
def falcon(database: str, tmp_path: Path) -> Iterator[Installation]:
    """All entities are there; nothing is recorded yet."""
    engine = create_engine(database)
    upgrade(engine)
    empty(engine)
    engine.dispose()
    root = written(tmp_path / "defs", a=PRIMARY, b=BACKUP, c=RAW, d=DELAYS, e=HOURLY)
    (root / "hourly.sql").write_text("SELECT 1")
    with open_installation(settings_of(tmp_path, FALCON_DATABASE_URL=database)) as opened:
        yield opened


def versions(falcon: Installation, name: str) -> list[tuple[object, ...]]:
    return [(one.version, one.operation, one.reason) for one in entity_history(falcon, name).versions]


def test_an_update_records_what_was_before_and_what_is_now(falcon: Installation, tmp_path: Path) -> None:
    update(falcon, request(written(tmp_path / "new", a=SHORTER), reason="too long"))
    assert versions(falcon, "raw") == [(1, "load", ""), (2, "update", "too long")]
    assert versions(falcon, "hourly") == [(1, "load", "")]
    found = entity_history(falcon, "raw")
    assert (found.is_recorded, found.versions[1].text, found.versions[1].actor) == (True, SHORTER, falcon.settings.user)
    assert found.as_data()["items"][0]["since"] == "2013-01-03T06:00:00+00:00"


def test_a_dry_run_and_what_changes_nothing_record_nothing(falcon: Installation, tmp_path: Path) -> None:
    update(falcon, request(written(tmp_path / "new", a=SHORTER), dry_run=True))
    with pytest.raises(UnknownEntityError, match="no definition of an entity 'raw' is recorded"):
        entity_history(falcon, "raw")
    update(falcon, request(written(tmp_path / "old", a=RAW), reason="nothing"))
    assert versions(falcon, "raw") == [(1, "load", "")]


def test_differences(falcon: Installation, tmp_path: Path) -> None:
    update(falcon, request(written(tmp_path / "new", a=SHORTER)))
    found = entity_diff(falcon, "raw")
    assert found.version == 1
    assert "--- raw version 1\n+++ raw now\n" in found.diff
    assert "days(80)" in found.diff
    assert entity_diff(falcon, "raw", 2).diff == ""
    (falcon.settings.entity_defs / "c.yaml").write_text(RAW)
    assert not entity_history(falcon, "raw").is_recorded
    assert entity_diff(falcon, "raw").version == 2
    with pytest.raises(UnknownEntityError, match="feed 'raw' has no version 3: there are 1 to 2"):
        entity_diff(falcon, "raw", 3)


def test_a_version_is_restored(falcon: Installation, tmp_path: Path) -> None:
    before = content(falcon.settings.entity_defs)
    update(falcon, request(written(tmp_path / "new", a=SHORTER)))
    after = content(falcon.settings.entity_defs)
    assert restore_entity(falcon, 1, request("raw", dry_run=True)).changed
    assert content(falcon.settings.entity_defs) == after
    assert restore_entity(falcon, 1, request("raw", reason="back")).changed
    assert content(falcon.settings.entity_defs) == before
    assert versions(falcon, "raw")[-1] == (3, "restore", "back")
    assert not restore_entity(falcon, 1, request("raw")).changed
    assert len(versions(falcon, "raw")) == 3


def test_what_was_deleted_is_submitted_again(falcon: Installation) -> None:
    delete(falcon, request("hourly", reason="unused"))
    assert versions(falcon, "hourly") == [(1, "load", ""), (2, "delete", "unused")]
    with pytest.raises(UnknownEntityError, match="in version 2 process 'hourly' was deleted: use another one"):
        restore_entity(falcon, 2, request("hourly"))
    restore_entity(falcon, 1, request("hourly"))
    assert list(falcon.all_entities.processes) == ["hourly"]
    assert versions(falcon, "hourly")[-1] == (3, "restore", "")


def test_a_version_is_restored_with_the_secrets_of_now(falcon: Installation, tmp_path: Path) -> None:
    kept = "properties: {{db_password: {}, size: '{}'}}\n"
    here = PRIMARY.strip("\n") + "\n"
    for name, text in (("old", kept.format("hunter2", 1)), ("new", kept.format("hunter3", 2))):
        update(falcon, request(written(tmp_path / name, a=here + text)))
    assert restore_entity(falcon, 2, request("primary")).changed
    assert falcon.all_entities.clusters["primary"].properties == {"db_password": "hunter3", "size": "1"}
    update(falcon, request(written(tmp_path / "none", a=here)))
    before = content(falcon.settings.entity_defs)
    with pytest.raises(DefinitionStoreError) as caught:
        restore_entity(falcon, 2, request("primary"))
    assert str(caught.value) == (
        "version 2 of cluster 'primary': secrets are not recorded but taken from the present definition, and the "
        "present definition of the cluster has none there: properties.db_password; declare it again, as {env: NAME} "
        "where that is legal, or update from a file"
    )
    assert content(falcon.settings.entity_defs) == before


def test_a_version_that_does_not_fit_any_more_is_refused(falcon: Installation, tmp_path: Path) -> None:
    delete(falcon, request("hourly"))
    delete(falcon, request("delays"))
    before = content(falcon.settings.entity_defs)
    with pytest.raises(InvalidDefinitionsError, match=r"hourly version 1:.*unknown feed 'delays'"):
        restore_entity(falcon, 1, request("hourly"))
    with pytest.raises(EntityInUseError):
        delete(falcon, request("primary"))
    assert content(falcon.settings.entity_defs) == before


def test_without_a_database_definitions_change_all_the_same(tmp_path: Path) -> None:
    falcon = installation_of(tmp_path)
    assert submit(falcon, request(written(tmp_path / "new", a=PRIMARY))).changed
    assert list(falcon.all_entities.clusters) == ["primary"]


WITH_LIB = HOURLY.replace("path: hourly.sql}", "path: hourly.sql, lib: [libs]}")


def test_workflow_files_are_compared_and_restored(falcon: Installation) -> None:
    root = falcon.settings.entity_defs
    (root / "libs").mkdir()
    (root / "libs/a.jar").write_bytes(b"\0old")
    (root / "libs/large.jar").write_bytes(b"x" * (1 << 21))
    (root / "e.yaml").write_text(WITH_LIB)
    update(falcon, request(written(root.parent / "one", a=SHORTER)))
    before = content(root)
    (root / "hourly.sql").write_text("SELECT 2")
    (root / "libs/a.jar").write_bytes(b"\0new")
    (root / "libs/large.jar").unlink()
    update(falcon, request(written(root.parent / "two", a=RAW)))
    assert [one for one, _, _ in versions(falcon, "hourly")] == [1, 2]
    found = entity_diff(falcon, "hourly")
    assert found.version == 1
    assert "--- hourly version 1: hourly.sql\n+++ hourly.sql now\n@@ -1 +1 @@\n-SELECT 1\n+SELECT 2\n" in found.diff
    assert "--- hourly version 1: libs/a.jar\n+++ libs/a.jar now\n(the content, which is not shown" in found.diff
    assert "--- hourly version 1: libs/large.jar\n+++ /dev/null\n" in found.diff
    changed = content(root)
    dry = restore_entity(falcon, 1, request("hourly", dry_run=True))
    assert dry.changed and "-SELECT 2\n+SELECT 1\n" in dry.diff
    assert content(root) == changed
    result = restore_entity(falcon, 1, request("hourly", reason="back"))
    assert [(one.name, one.action) for one in result.entities] == [("hourly", "updated")]
    assert content(root) == {**before, "c.yaml": changed["c.yaml"]}
    assert versions(falcon, "hourly")[-1] == (3, "restore", "back")
    assert entity_diff(falcon, "hourly", 1).diff == ""
    assert not restore_entity(falcon, 1, request("hourly")).changed


def test_what_was_deleted_with_its_workflow_is_there_again(falcon: Installation) -> None:
    root = falcon.settings.entity_defs
    before = content(root)["hourly.sql"]
    delete(falcon, request("hourly"))
    (root / "hourly.sql").unlink()
    restore_entity(falcon, 1, request("hourly"))
    assert content(root)["hourly.sql"] == before
    assert list(falcon.all_entities.processes) == ["hourly"]


def test_a_file_that_was_not_kept_stays_as_it_is_and_is_named(falcon: Installation) -> None:
    root = falcon.settings.entity_defs
    (root / "e.yaml").write_text(HOURLY.replace("path: hourly.sql", f"path: {root}/hourly.sql"))
    update(falcon, request(written(root.parent / "one", a=SHORTER)))
    (root / "e.yaml").write_text(HOURLY)
    (warning,) = restore_entity(falcon, 1, request("hourly")).warnings
    said = "it was not kept with version 1 (its path leads out of the folder of the definitions): it is left unchanged"
    assert warning.message == said
    assert (root / "hourly.sql").read_text() == "SELECT 1"


def test_what_is_in_the_way_of_a_workflow_is_named(falcon: Installation) -> None:
    root = falcon.settings.entity_defs
    update(falcon, request(written(root.parent / "one", a=SHORTER)))
    (root / "hourly.sql").unlink()
    (root / "hourly.sql").mkdir()
    with pytest.raises(DefinitionStoreError, match="is not a file of the tree: move it away"):
        restore_entity(falcon, 1, request("hourly"))


def test_what_is_touched_has_a_new_version_each_time(falcon: Installation) -> None:
    before = content(falcon.settings.entity_defs)
    result = touch(falcon, request("hourly", "raw", reason="new package"))
    assert result.changed
    assert [(one.kind, one.name, one.action) for one in result.entities] == [
        ("process", "hourly", "touched"),
        ("feed", "raw", "touched"),
    ]
    assert versions(falcon, "hourly") == [(1, "load", ""), (2, "touch", "new package")]
    assert versions(falcon, "delays") == [(1, "load", "")]
    touch(falcon, request("hourly"))
    assert versions(falcon, "hourly")[2:] == [(3, "touch", "")]
    assert {one.text for one in entity_history(falcon, "hourly").versions} == {HOURLY.strip("\n") + "\n"}
    with falcon.database.connect() as connection:
        assert [bool(kept_files(connection, "hourly", number)) for number in (1, 2, 3)] == [True] * 3
    assert touch(falcon, request("raw", dry_run=True)).changed
    assert len(versions(falcon, "raw")) == 2
    assert content(falcon.settings.entity_defs) == before
    with pytest.raises(UnknownEntityError, match=r"there is no entity 'rw' \(did you mean 'raw'\?\)"):
        touch(falcon, request("raw", "rw"))
    assert len(versions(falcon, "raw")) == 2
