"""Submitting, updating and deleting: what is written, what is refused, what is nothing to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import (
    DefinitionStoreError,
    EntityInUseError,
    FalconError,
    InvalidDefinitionsError,
    UnknownEntityError,
)
from falcon_assets.features.entities.changing import delete, submit, update
from falcon_assets.features.entities.results import OperationResult
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import load_settings
from tests.catalog.mutations import mutations
from tests.features.entities.trees import (
    BACKUP,
    DELAYS,
    HOURLY,
    PARTS,
    PRIMARY,
    RAW,
    content,
    installation_of,
    request,
    settings_of,
    written,
)
from tests.properties import examples


@pytest.fixture
def falcon(tmp_path: Path, database: str) -> Iterator[Installation]:
    """With a workflow in the tree, and nothing else."""
    (tmp_path / "defs").mkdir()
    (tmp_path / "defs" / "hourly.sql").write_text("SELECT 1")
    user = load_settings().user
    with open_installation(settings_of(tmp_path, FALCON_DATABASE_URL=database, FALCON_PROXY_USERS=user)) as opened:
        yield opened


@pytest.fixture
def full(falcon: Installation, tmp_path: Path) -> Installation:
    """With all entities in it."""
    submit(falcon, request(written(tmp_path / "all", all="---\n".join(PARTS))))
    return falcon


def said(result: OperationResult) -> list[tuple[str, str, str]]:
    return [(one.kind, one.name, one.action) for one in result.entities]


def test_a_folder_is_submitted_in_order_each_entity_in_a_file_of_its_own(falcon: Installation, tmp_path: Path) -> None:
    folder = written(tmp_path / "given", a=HOURLY, b=f"---\n{RAW}---\n# why\n{DELAYS}", c=f"{BACKUP}---\n{PRIMARY}")
    result = submit(falcon, request(folder, actor="ann", reason="first"))
    assert said(result) == [
        ("cluster", "backup", "submitted"),
        ("cluster", "primary", "submitted"),
        ("feed", "raw", "submitted"),
        ("feed", "delays", "submitted"),
        ("process", "hourly", "submitted"),
    ]
    assert (result.actor, result.reason, result.operation, result.changed) == ("ann", "first", "submit", True)
    assert content(falcon.settings.entity_defs) == {
        "hourly.sql": b"SELECT 1",
        "clusters/backup.yaml": BACKUP.encode(),
        "clusters/primary.yaml": PRIMARY.encode(),
        "feeds/raw.yaml": RAW.encode(),
        "feeds/delays.yaml": b"# why\n" + DELAYS.encode(),
        "processes/hourly.yaml": HOURLY.encode(),
    }
    assert list(falcon.all_entities.processes) == ["hourly"]


def test_what_is_there_already_is_nothing_to_do(full: Installation, tmp_path: Path) -> None:
    before = content(full.settings.entity_defs)
    other_order = "".join(sorted(PRIMARY.splitlines(keepends=True)))
    for operation in (submit, update):
        result = operation(full, request(tmp_path / "all", written(tmp_path / "b", b=other_order), "raw"))
        assert not result.changed
        assert {one.action for one in result.entities} == {"unchanged"}
    assert content(full.settings.entity_defs) == before


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "needs what is not there": ({"a": HOURLY}, "a.yaml:8: inputs[0].feed: unknown feed 'raw'"),
    "not valid by itself": ({"a": PRIMARY + "colour: red\n"}, "a.yaml:5: colour: unknown key 'colour'"),
    "not YAML": ({"a": "kind: ["}, "a.yaml:2: not YAML"),
    "no kind": ({"a": "name: x\n"}, "a.yaml:1: kind: required key is missing"),
    "no mapping": ({"a": "[1]\n"}, "a.yaml:1: a document must be a mapping"),
    "nothing": ({"a": "# none\n"}, "there is no entity definition in "),
    "no file": ({}, "there is no entity definition (*.yaml, *.yml) in the folder"),
    "twice": ({"a": PRIMARY, "b": PRIMARY}, "b.yaml:2: name: cluster 'primary' is already defined at"),
    "hidden": ({"a": PRIMARY + "storage_options: {a: '**'}\n"}, "a.yaml:5: storage_options.a: the value is hidden"),
    "all or nothing": ({"a": PRIMARY, "b": BACKUP, "c": RAW.replace("hours", "x")}, "c.yaml:3: frequency: 'x(1)'"),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_valid_is_refused_and_nothing_is_written(
    falcon: Installation, tmp_path: Path, texts: dict[str, str], message: str
) -> None:
    with pytest.raises(FalconError) as caught:
        submit(falcon, request(written(tmp_path / "given", **texts)))
    assert message in str(caught.value)
    assert content(falcon.settings.entity_defs) == {"hourly.sql": b"SELECT 1"}


def test_another_definition_is_not_submitted_again(full: Installation, tmp_path: Path) -> None:
    given = written(tmp_path / "given", a=RAW.replace("days(90)", "days(80)"))
    with pytest.raises(DefinitionStoreError, match=r"feed 'raw' \(.*raw.yaml:1\) is submitted already, with another"):
        submit(full, request(given))
    with pytest.raises(
        UnknownEntityError, match=r"there is no feed 'rax' \(did you mean 'raw'\?\): use falcon entity s"
    ):
        update(full, request(written(tmp_path / "other", a=RAW.replace("name: raw", "name: rax"))))
    with pytest.raises(UnknownEntityError, match=r"there is no file and no entity 'rav' \(did you mean 'raw'\?\)"):
        submit(full, request("rav"))


def test_an_update_keeps_comments_and_order(falcon: Installation, tmp_path: Path) -> None:
    root = falcon.settings.entity_defs
    (root / "all.yaml").write_text(
        "# all\r\n" + "---\n".join(PARTS).replace("limit: days(90)", "limit: days(90) ") + "# end"
    )
    result = update(falcon, request(written(tmp_path / "given", a=RAW.replace("hours(6)", "hours(7)"))))
    assert said(result) == [("feed", "raw", "updated")]
    after = (root / "all.yaml").read_bytes().decode()
    assert after.count("\r\n") == after.count("\n")
    assert (
        after.replace("\r\n", "\n")
        == "# all\n" + "---\n".join(PARTS).replace("days(90)", "days(90) ").replace("hours(6)", "hours(7)") + "# end"
    )


def test_an_update_with_comments_is_taken_as_it_is(full: Installation, tmp_path: Path) -> None:
    text = "# mine\n" + RAW.replace("partitions: [carrier]", "partitions: [carrier]   # one")
    assert update(full, request(written(tmp_path / "given", a=text))).changed
    assert (full.settings.entity_defs / "feeds" / "raw.yaml").read_text() == text
    assert not update(full, request(tmp_path / "given")).changed


def test_an_update_that_breaks_another_entity_is_refused(full: Installation, tmp_path: Path) -> None:
    before = content(full.settings.entity_defs)
    with pytest.raises(InvalidDefinitionsError, match=r"hourly.yaml:8: inputs\[0\].feed: feed 'raw' is not on cluster"):
        update(full, request(written(tmp_path / "given", a=RAW.replace("name: primary", "name: backup", 1).replace("  - name: backup\n    type: target\n    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}\n", ""))))  # fmt: skip  # noqa: E501
    assert content(full.settings.entity_defs) == before


def test_what_others_need_is_not_deleted(full: Installation) -> None:
    before = content(full.settings.entity_defs)
    with pytest.raises(EntityInUseError) as caught:
        delete(full, request("primary", "delays"))
    said = str(caught.value).replace(f"{full.settings.entity_defs}/", "")
    assert said == (
        "cluster 'primary' is needed by feed 'raw' (feeds/raw.yaml:1), process 'hourly' (processes/hourly.yaml:1); "
        "feed 'delays' is needed by process 'hourly' (processes/hourly.yaml:1): delete those first, or together with it"
    )
    assert content(full.settings.entity_defs) == before


def test_entities_are_deleted_by_name_and_by_file(full: Installation, tmp_path: Path) -> None:
    result = delete(full, request("hourly", "delays"))
    assert said(result) == [("feed", "delays", "deleted"), ("process", "hourly", "deleted")]
    result = delete(full, request("hourly", written(tmp_path / "given", a=RAW), "nobody"))
    assert said(result) == [
        ("feed", "raw", "deleted"),
        ("entity", "hourly", "unchanged"),
        ("entity", "nobody", "unchanged"),
    ]
    assert delete(full, request("primary", "backup")).changed
    assert set(content(full.settings.entity_defs)) == {"hourly.sql"}
    assert not delete(full, request("primary", kind="cluster")).changed


def test_one_of_several_in_a_file_is_deleted(falcon: Installation) -> None:
    root = falcon.settings.entity_defs
    (root / "all.yaml").write_text("---\n".join(PARTS))
    delete(falcon, request("hourly"))
    assert (root / "all.yaml").read_text() == "---\n".join(PARTS[:-1])


def test_a_name_that_two_have(falcon: Installation, tmp_path: Path) -> None:
    submit(falcon, request(written(tmp_path / "all", all="---\n".join(PARTS).replace("name: delays", "name: hourly").replace("feed: delays", "feed: hourly"))))  # fmt: skip  # noqa: E501
    with pytest.raises(UnknownEntityError, match="there is a feed and a process 'hourly': say which one with --kind"):
        delete(falcon, request("hourly"))
    assert said(delete(falcon, request("hourly", kind="process"))) == [("process", "hourly", "deleted")]


def test_a_dry_run_says_what_would_change_and_writes_nothing(full: Installation, tmp_path: Path) -> None:
    before = content(full.settings.entity_defs)
    given = written(tmp_path / "given", a=RAW.replace("days(90)", "days(80)"))
    secret = PRIMARY + "storage_options: {key: s3cret}\n"
    result = update(full, request(given, written(tmp_path / "other", b=secret), dry_run=True))
    lines = [line for line in result.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert lines == [
        "+storage_options: {key: *****}",
        "-    retention: {limit: days(90)}",
        "+    retention: {limit: days(80)}",
    ]
    assert json.dumps(result.as_data())
    assert content(full.settings.entity_defs) == before


def test_a_tree_that_something_else_deploys(full: Installation, tmp_path: Path) -> None:
    before = content(full.settings.entity_defs)
    fixed = installation_of(tmp_path, FALCON_ENTITY_DEFS_READONLY="true")
    with pytest.raises(DefinitionStoreError, match=r"FALCON_ENTITY_DEFS_READONLY is set: .* --dry-run says"):
        delete(fixed, request("hourly"))
    assert delete(fixed, request("hourly", dry_run=True)).changed
    assert content(full.settings.entity_defs) == before


def test_a_file_with_the_name_of_an_entity_is_left_alone(falcon: Installation, tmp_path: Path) -> None:
    taken = falcon.settings.entity_defs / "clusters" / "primary.yaml"
    written(taken.parent, primary=BACKUP)
    submit(falcon, request(written(tmp_path / "given", a=PRIMARY)))
    assert taken.read_text() == BACKUP
    assert (taken.parent / "primary-2.yaml").read_text() == PRIMARY


def test_a_tree_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    falcon = installation_of(tmp_path)
    submit(falcon, request(written(tmp_path / "given", a=PRIMARY)))
    assert list(load_entities(falcon.settings.entity_defs).clusters) == ["primary"]


def test_a_tree_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "defs").write_text("")
    with pytest.raises(DefinitionStoreError, match=r"the definitions in .*defs cannot be changed: "):
        submit(installation_of(tmp_path), request(written(tmp_path / "given", a=PRIMARY)))


def test_the_mode_of_a_file_stays(full: Installation, tmp_path: Path) -> None:
    file = full.settings.entity_defs / "feeds" / "raw.yaml"
    file.chmod(0o640)
    update(full, request(written(tmp_path / "given", a=RAW.replace("days(90)", "days(80)"))))
    assert file.stat().st_mode & 0o777 == 0o640
    assert "days(80)" in file.read_text()


_BASE = "---\n".join(PARTS[:3])
"""What is there before something is given by chance."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("base")
    (folder / "defs").mkdir()
    (folder / "defs" / "hourly.sql").write_text("SELECT 1")
    (folder / "defs" / "base.yaml").write_text(_BASE)
    with open_installation(settings_of(folder, FALCON_DATABASE_URL=database)) as opened:
        yield opened


@examples(300)
@given(
    text=st.one_of(mutations(f"{DELAYS}---\n{HOURLY}"), mutations(RAW), mutations(PRIMARY + "# the end\n")),
    operation=st.sampled_from([submit, update, delete]),
)
def test_whatever_is_given_leaves_a_valid_tree_or_is_refused_with_a_sentence(
    base: Installation, text: str, operation: Callable[..., OperationResult]
) -> None:
    root = base.settings.entity_defs
    before, given = content(root), root.parent / "given.yaml"
    given.write_bytes(text.encode())
    try:
        result = operation(base, request(given))
    except FalconError as error:
        assert str(error)
        if isinstance(error, InvalidDefinitionsError):
            assert all(problem.position.line for problem in error.problems)
        assert content(root) == before
    else:
        if set(content(root)) > {"hourly.sql"}:
            load_entities(root)
        assert (content(root) != before) == result.changed
        assert not operation(base, request(given)).changed
    finally:
        for name in content(root).keys() - before.keys():
            (root / name).unlink()
        for name, raw in before.items():
            (root / name).write_bytes(raw)
