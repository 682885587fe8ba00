"""Importing XML: all files or none, nothing twice, and never a tree that was valid broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.yaml_files import journal
from falcon_assets.errors import DefinitionStoreError
from falcon_assets.features.falcon_xml.operations import ImportRefusedError, import_xml
from falcon_assets.settings import load_settings
from tests.features.falcon_xml.definitions import ALL, CLUSTER, FEED, OUTPUT, PROCESS, changed


@pytest.fixture
def xml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the XML, which the working directory is above of."""
    monkeypatch.chdir(tmp_path)
    return written(Path("xml"), ALL)


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def tree(folder: Path) -> dict[str, str]:
    files = ((path, path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return {str(below): path.read_text() for path, below in files if below.parts[0] != ".falcon"}


def refused(*paths: Path, into: Path) -> list[str]:
    with pytest.raises(ImportRefusedError) as caught:
        import_xml(paths, into)
    assert str(caught.value).endswith("nothing was written")
    return [str(problem) for problem in caught.value.problems]


def test_files_of_a_new_folder(xml: Path) -> None:
    result = import_xml([xml], Path("defs"))
    assert [(one.kind, one.name, one.file) for one in result.entities] == [
        ("cluster", "primary", "defs/clusters/primary.yaml"),
        ("feed", "clicks", "defs/feeds/clicks.yaml"),
        ("feed", "joined", "defs/feeds/joined.yaml"),
        ("process", "join", "defs/processes/join.yaml"),
    ]
    assert (result.written, result.problems) == (4, ())
    store = load_entities(Path("defs"))
    assert store.process("join").workflow.files() == {"path": "workflows/join.py"}
    assert sorted(tree(Path("defs"))) == [
        "clusters/primary.yaml",
        "feeds/clicks.yaml",
        "feeds/joined.yaml",
        "processes/join.yaml",
        "workflows/join-late-clicks.py",
        "workflows/join.py",
    ]


def test_the_same_again_changes_nothing(xml: Path) -> None:
    first = import_xml([xml], Path("defs"))
    before = tree(Path("defs"))
    again = import_xml([xml], Path("defs"))
    assert (again.entities, again.written, again.warnings) == (first.entities, 0, ())
    assert tree(Path("defs")) == before


def test_more_is_added_and_a_workflow_that_is_there_stays(xml: Path) -> None:
    import_xml([xml / "cluster.xml", xml / "joined.xml"], Path("defs"))
    written(Path("defs"), {"workflows/join.py": "# mine", "feeds/clicks.yaml": ""})
    result = import_xml([xml], Path("defs"))
    assert result.written == 2
    assert sorted(tree(Path("defs"))) == [
        "clusters/primary.yaml",
        "feeds/clicks-2.yaml",
        "feeds/clicks.yaml",
        "feeds/joined.yaml",
        "processes/join.yaml",
        "workflows/join-late-clicks.py",
        "workflows/join.py",
    ]
    assert tree(Path("defs"))["workflows/join.py"] == "# mine"
    assert "workflows/join.py exists, and is not replaced" in [one.message for one in result.warnings]
    assert import_xml([xml], Path("defs")).written == 0


def test_definitions_that_are_deployed_are_not_changed(xml: Path) -> None:
    settings = load_settings({"FALCON_ENTITY_DEFS_READONLY": "true", "FALCON_ENTITY_DEFS": "defs"})
    with pytest.raises(
        DefinitionStoreError, match=r"READONLY is set: defs is deployed by something else; --into names"
    ):
        import_xml([xml], Path("defs"), settings)
    assert not Path("defs").exists()
    assert import_xml([xml], Path("others"), settings).written == 4


def test_what_is_defined_otherwise_is_refused(xml: Path) -> None:
    import_xml([xml], Path("defs"))
    before = tree(Path("defs"))
    written(xml, {"clicks.xml": changed(FEED, "<frequency>hours(1)", "<frequency>minutes(30)")})
    assert refused(xml, into=Path("defs")) == [
        "xml/clicks.xml:1: name: feed 'clicks' is already defined differently at defs/feeds/clicks.yaml:2: remove it "
        "there, or import into another folder"
    ]
    assert tree(Path("defs")) == before


def test_definitions_that_are_there_are_never_broken(xml: Path) -> None:
    import_xml([xml / "cluster.xml", xml / "joined.xml"], Path("defs"))
    before = tree(Path("defs"))
    assert refused(xml / "join.xml", into=Path("defs")) == [
        "xml/join.xml:19: inputs[0].feed: unknown feed 'clicks'; legal here: joined"
    ]
    assert tree(Path("defs")) == before


def test_definitions_of_a_new_folder_are_written_with_their_problems(xml: Path) -> None:
    result = import_xml([xml / "cluster.xml", xml / "joined.xml", xml / "join.xml"], Path("defs"))
    assert result.written == 3
    assert [str(problem) for problem in result.problems] == [
        "xml/join.xml:19: inputs[0].feed: unknown feed 'clicks'; legal here: joined"
    ]


def test_what_may_be_left_out_is_left_out_with_the_reason(xml: Path) -> None:
    result = import_xml([xml], Path("defs"))
    (warning,) = [one for one in result.warnings if one.name == "properties.root"]
    assert (warning.file, warning.line) == ("xml/join.xml", 26)
    assert warning.message == (
        "'${nameNode}/apps': unknown variable '${nameNode}' on cluster 'primary': it is left out"
    )
    assert '#   root: "${nameNode}/apps"' in Path("defs/processes/join.yaml").read_text().replace("# root", "#   root")


def test_one_bad_late_input_is_left_out_alone(xml: Path) -> None:
    """There were none at all where one of them was of no input."""
    lates = [f'<late-input input="{name}" workflow-path="/x/{name}"/>' for name in ("gone", "clicks", "gone2")]
    good = '<late-input input="clicks" workflow-path="/apps/join/late.xml"/>'
    written(xml, {"join.xml": changed(PROCESS, good, "".join(lates))})
    result = import_xml([xml], Path("defs"))
    assert result.problems == ()
    late = load_entities(Path("defs")).process("join").late_process
    assert late is not None and [one.input for one in late.inputs] == ["clicks"]
    told = [one.message for one in result.warnings if one.name.startswith("late_process.inputs")]
    assert [message.rpartition(": ")[2] for message in told] == [
        "late_process.inputs[0] is left out",
        "late_process.inputs[2] is left out",
    ]
    written(xml, {"join.xml": changed(PROCESS, good, lates[0])})
    import_xml([xml], Path("alone"))
    assert load_entities(Path("alone")).process("join").late_process is None


@pytest.mark.parametrize(
    "good, bad, path, left",
    [
        ('attempts="3"', 'attempts="many"', "retry.attempts", {"policy": "periodic", "on_timeout": True}),
        ('delay="minutes(10)"', 'delay="soon"', "retry.delay", {"attempts": 3, "on_timeout": True}),
        ('policy="periodic"', 'policy="sometimes"', "retry.policy", {"attempts": 3, "on_timeout": True}),
        ('pipelines>clickstream, nightly', 'pipelines>clickstream, nightly', "", {"attempts": 3}),
    ],
)  # fmt: skip
def test_of_a_retry_the_bad_value_alone_is_left_out(
    xml: Path, good: str, bad: str, path: str, left: dict[str, object]
) -> None:
    written(xml, {"join.xml": changed(PROCESS, good, bad)})
    result = import_xml([xml], Path("defs"))
    assert result.problems == ()
    told = [one.name for one in result.warnings if one.name.startswith("retry") and one.message.endswith("left out")]
    assert told == ([path] if path else [])
    retry = load_entities(Path("defs")).process("join").retry.model_dump()
    assert retry | left == retry


def test_two_of_one_name(xml: Path) -> None:
    written(xml, {"more/again.xml": OUTPUT})
    assert refused(xml, into=Path("defs")) == [
        "xml/more/again.xml:1: name: feed 'joined' is also in xml/joined.xml: import one of them"
    ]


def test_one_file_that_is_not_fit_stops_all_of_them(xml: Path) -> None:
    hostile = '<!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<feed name="&x;"/>'
    written(
        xml, {"bad.xml": hostile, "worse.xml": "<feed>\n</process>", "large.xml": f"<feed>{' ' * 1_000_000}</feed>"}
    )
    (xml / "pipe.xml").unlink(missing_ok=True)
    os.mkfifo(xml / "pipe.xml")
    assert [problem.partition(" ")[0] for problem in refused(xml, into=Path("defs"))] == [
        "xml/bad.xml:1:",
        "xml/large.xml:1:",
        "xml/pipe.xml:1:",
        "xml/worse.xml:2:",
    ]
    assert not Path("defs").exists()


def test_other_xml_is_left_out(xml: Path) -> None:
    written(xml, {"workflow.xml": "<workflow-app xmlns='uri:oozie:workflow:0.3' name='x'/>"})
    result = import_xml([xml], Path("defs"))
    assert (len(result.entities), result.warnings[-1].file, result.warnings[-1].name) == (
        4,
        "xml/workflow.xml",
        "workflow-app",
    )
    assert refused(xml / "workflow.xml", into=Path("defs2"))[0].startswith(
        "xml/workflow.xml:1: no definition of Apache"
    )


def test_a_link_to_a_folder_is_followed(xml: Path) -> None:
    Path("real").mkdir()
    Path("defs").symlink_to("real")
    import_xml([xml], Path("defs"))
    assert Path("defs").is_symlink()
    assert len(tree(Path("real"))) == 6


def test_a_file_is_no_folder(xml: Path) -> None:
    with pytest.raises(DefinitionStoreError, match=r"the definitions in xml/join.xml cannot be changed: "):
        import_xml([xml], xml / "join.xml")


@pytest.mark.parametrize("failing", range(7))
def test_a_full_disk_at_any_file_leaves_nothing(xml: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    count = iter(range(10))
    write = journal._write

    def full(path: Path, content: bytes, like: Path | None) -> None:
        if next(count) == failing:
            raise OSError(28, "No space left on device")
        write(path, content, like)

    monkeypatch.setattr(journal, "_write", full)
    with pytest.raises(DefinitionStoreError, match="No space left on device"):
        import_xml([xml], Path("defs"))
    assert tree(Path("defs")) == {}


def test_a_cluster_whose_folders_are_in_each_other_gets_others(xml: Path) -> None:
    written(xml, {"cluster.xml": changed(CLUSTER, "/apps/falcon/working", "/apps/falcon/staging/work")})
    result = import_xml([xml], Path("defs"))
    (warning,) = [one for one in result.warnings if one.name == "locations"]
    assert "must not be inside of each other: it is left out" in warning.message
    assert load_entities(Path("defs")).cluster("primary").locations.staging == "/.falcon/staging"


def test_what_changes_the_data_is_never_left_out(xml: Path) -> None:
    written(xml, {"join.xml": changed(PROCESS, 'partition="*"', 'partition="*/x/y"')})
    (problem,) = import_xml([xml], Path("defs")).problems
    assert problem.key_path == "inputs[0].partition"


SNAPSHOT = """<feed name="countries" xmlns="uri:falcon:feed:0.1">
    <frequency>days(1)</frequency>
    <clusters>
        <cluster name="primary" type="source">
            <validity start="2012-01-01T00:00Z" end="2012-12-31T00:00Z"/>
            <retention limit="days(2)" action="delete"/>
        </cluster>
    </clusters>
    <locations><location type="data" path="/countries"/></locations>
    <ACL owner="etl" group="users" permission="0755"/>
</feed>
"""


def test_a_path_without_a_time_is_a_snapshot(xml: Path) -> None:
    written(xml, {"countries.xml": SNAPSHOT})
    result = import_xml([xml], Path("defs"))
    assert result.problems == ()
    assert load_entities(Path("defs")).feed("countries").snapshot
    assert [str(one) for one in result.warnings if one.file == "xml/countries.xml"] == [
        "xml/countries.xml:6: feed/clusters/cluster/retention: a snapshot feed has only its present data: left out",
        "xml/countries.xml:9: feed/locations/location/@path: '/countries': a path without a time is a snapshot "
        "feed, available once it was refreshed at or after a time",
    ]
    assert "limit: days(2)" in Path("defs/feeds/countries.yaml").read_text()
