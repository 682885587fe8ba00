"""History of definitions: what commands record, differences, and going back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from falcon_assets.errors import DefinitionStoreError, EntityInUseError, InvalidDefinitionsError, UnknownEntityError
from falcon_assets.ledger.upgrade import upgrade
from falcon_assets.operations.entities.changing import delete, submit, update
from falcon_assets.operations.entities.versions import entity_diff, entity_history, restore_entity
from falcon_assets.operations.installation import Installation, open_installation
from tests.ledger.histories import empty
from tests.operations.trees import (
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


@pytest.mark.parametrize("value", ["hushed", '"hushed"'])
def test_a_version_with_secrets_is_not_restored(falcon: Installation, tmp_path: Path, value: str) -> None:
    secret = PRIMARY.strip("\n") + f"\nstorage_options: {{key: {value}}}\n"
    update(falcon, request(written(tmp_path / "secret", a=secret)))
    named = secret.replace(value, "{env: KEY}")
    update(falcon, request(written(tmp_path / "named", a=named)))
    before = content(falcon.settings.entity_defs)
    with pytest.raises(DefinitionStoreError) as caught:
        restore_entity(falcon, 2, request("primary"))
    assert str(caught.value) == (
        "version 2 of cluster 'primary' held values of storage_options that are not recorded: "
        "write them as {env: NAME}, or update from a file"
    )
    assert content(falcon.settings.entity_defs) == before
    assert restore_entity(falcon, 1, request("primary")).changed
    assert restore_entity(falcon, 3, request("primary")).changed
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
