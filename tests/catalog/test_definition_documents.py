from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError, Problem
from tests.catalog.definition_files import CLUSTERS, FEEDS, FILES, changed, load, problems, write


def single(root: Path, files: dict[str, str]) -> Problem:
    with pytest.raises(InvalidDefinitionsError) as caught:
        load(root, files)
    (problem,) = caught.value.problems
    return problem


def test_files_at_any_depth_hidden_ones_left_out(tmp_path: Path) -> None:
    first, second = CLUSTERS.split("---\n")
    files = {"a/b/c/one.yml": first, "two.yaml": f"# a comment\n---\n---\n{second}---\n", "a/.hidden.yaml": "["}
    store = load(tmp_path, {**files, ".git/x.yaml": "[", "notes.txt": "[", "empty.yaml": ""})
    assert list(store.clusters) == ["backup", "primary"]
    assert str(store.position(store.cluster("primary"))) == f"{tmp_path}/a/b/c/one.yml:1"
    assert str(store.position(store.cluster("backup"))) == f"{tmp_path}/two.yaml:4"


def test_paths_are_shown_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"defs/a.yaml": "kind: cloister"})
    with pytest.raises(InvalidDefinitionsError, match=r"^defs/a\.yaml:1: kind: unknown kind 'cloister'"):
        load_entities(Path("defs"))


def test_text_stays_text(tmp_path: Path) -> None:
    tags = (
        "tags: {a: yes, b: on, c: 2013-01-01, d: 2013-01-01T00:00Z, e: '15', f: 1:30, g: 0x, yes: no, 1: one, null: x}"
    )
    store = load(tmp_path, changed("clusters.yaml", "colo: east", tags))
    assert store.cluster("primary").tags == {
        "a": "yes",
        "b": "on",
        "c": "2013-01-01",
        "d": "2013-01-01T00:00Z",
        "e": "15",
        "f": "1:30",
        "g": "0x",
        "yes": "no",
        "1": "one",
        "null": "x",
    }


@pytest.mark.parametrize("written", ["0755", "15", "1.10", "true", "-3", "0o17", "1e3", ".inf"])
def test_other_scalars_must_be_quoted_where_a_text_is_wanted(tmp_path: Path, written: str) -> None:
    problem = single(tmp_path, changed("clusters.yaml", "colo: east", f"properties: {{size: {written}}}"))
    assert problem.key_path == "properties.size"
    assert problem.message == f'{written} is not a text: write "{written}" in quotes'


def test_aliases_and_merge_keys(tmp_path: Path) -> None:
    feeds = FEEDS.replace(
        "    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}\n    retention: {limit: days(90)}\n",
        "    validity: &all {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}\n    retention: {limit: days(90)}\n",
    ).replace(
        "  - name: backup\n    type: target\n    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}\n",
        "  - {<<: [{type: target, name: shadowed}, {type: source}], name: backup, validity: *all}\n",
    )
    raw = load(tmp_path, {**FILES, "feeds.yaml": feeds}).feed("raw")
    assert [(entry.name, entry.type) for entry in raw.clusters] == [("primary", "source"), ("backup", "target")]
    assert raw.clusters[0].validity == raw.clusters[1].validity


def test_a_problem_of_a_merged_value_points_into_the_anchor(tmp_path: Path) -> None:
    problem = single(tmp_path, {"a.yaml": f"{CLUSTERS}acl: {{<<: {{permission: rwx}}, owner: etl}}\n"})
    assert str(problem).endswith(
        """a.yaml:10: acl.permission: 'rwx' is not legal: write octal digits in quotes ("0755"), or "*\""""
    )
    assert problem.position.column == 24


LAUGHS = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12))
STRUCTURE = {
    "duplicate_key": (
        "kind: cluster\nkind: feed\n",
        ["a.yaml:2: kind: key 'kind' is given twice, first in line 1"],
    ),
    "custom_tag": (
        "properties: {a: !env HOME}\n",
        ["a.yaml:1: properties.a: the tag !env is not supported; leave it out"],
    ),
    "python_tag": (
        "properties: {a: !!python/object/apply:os.system [ls]}\n",
        ["a.yaml:1: properties.a: the tag !!python/object/apply:os.system is not supported; leave it out"],
    ),
    "tag_that_does_not_fit": (
        "properties: {a: !!int abc}\n",
        ["a.yaml:1: properties.a: the value does not fit its tag !!int"],
    ),
    "alias_inside_itself": (
        "properties: &p {a: *p}\n",
        ["a.yaml:1: properties: an alias must not stand inside of what it stands for"],
    ),
    "billion_laughs": (
        f"l0: &l0 [lol, lol]\n{LAUGHS}\n",
        ["a.yaml:1: the document has more than 100,000 values, aliases written out"],
    ),
    "key_that_is_no_text": ("{a: 1}: 2\n", ["a.yaml:1: ?: a key must be a text"]),
    "merge_of_a_text": ("<<: x\n", ["a.yaml:1: <<: '<<' takes an alias of a mapping, or a list of such aliases"]),
    "unclosed_list": ("a: [1\nb: 2\n", ["a.yaml:2: not YAML: did not find expected ',' or ']'"]),
    "unknown_alias": ("a: *b\n", ["a.yaml:1: not YAML: found undefined alias"]),
    "too_deep": ("[" * 100_000, ["a.yaml:1: not YAML: nested deeper than 64 levels"]),
    "control_character": ("a: \x07\n", ["a.yaml:1: not YAML: control characters are not allowed"]),
    "list_at_the_top": (
        "- kind: cluster\n",
        ["a.yaml:1: a document must be a mapping with a kind: cluster, datasource, flow, feed, process"],
    ),
    "no_kind": (
        "name: x\n",
        ["a.yaml:1: kind: required key is missing: write cluster, datasource, flow, feed, process"],
    ),
    "kind_that_is_no_text": (
        "kind: [feed]\n",
        ["a.yaml:1: kind: must be one of cluster, datasource, flow, feed, process"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), STRUCTURE.values(), ids=STRUCTURE)
def test_structure(tmp_path: Path, text: str, expected: list[str]) -> None:
    found = problems(tmp_path, {"a.yaml": text})
    assert [line for line in found if line in expected] == expected, found


def test_other_documents_and_files_are_checked_in_spite_of_a_syntax_error(tmp_path: Path) -> None:
    files = {"a.yaml": "kind: fed\n---\n[", "b.yaml": "kind: ponds"}
    assert problems(tmp_path, files) == [
        "a.yaml:1: kind: unknown kind 'fed' (did you mean 'feed'?)",
        "a.yaml:4: not YAML: did not find expected node content",
        "b.yaml:1: kind: unknown kind 'ponds'; legal here: cluster, datasource, flow, feed, process",
    ]


def test_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"kind: cluster\nname: caf\xe9\n")
    with pytest.raises(
        InvalidDefinitionsError, match=r"a\.yaml:2: the file is not UTF-8: byte 0xe9 is not legal there"
    ):
        load_entities(tmp_path)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidDefinitionsError, match=r"a\.yaml:1: the file cannot be read: No such file or directory"):
        load_entities(tmp_path)


def test_odd_names_of_files_stay_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "a\nb\x1b.yaml").write_text("kind: fed\n")
    (tmp_path / os.fsdecode(b"c\xff.yaml")).write_text("kind: fed\n")
    with pytest.raises(InvalidDefinitionsError) as caught:
        load_entities(tmp_path)
    names = [Path(problem.position.file).name for problem in caught.value.problems]
    assert names == ["a\\nb\\x1b.yaml", "c\\udcff.yaml"]
    assert str(caught.value).encode()


@pytest.mark.parametrize(
    ("limit", "most", "expected"),
    [
        ("MAX_FILES", 2, ".:1: there are more than 2 files of definitions: the others are not read"),
        ("MAX_BYTES", 9, "b.yaml:1: the files up to this one hold more than 9 bytes: it and the others are not read"),
    ],
)
def test_limits_on_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, expected: str
) -> None:
    monkeypatch.setattr(f"falcon_assets.catalog.yaml_files.definition_files.{limit}", most)
    assert expected in problems(tmp_path, {"a.yaml": "kind: x", "b.yaml": "kind: x", "c.yaml": "kind: x"})


def test_links_inside_of_the_folder_are_followed(tmp_path: Path) -> None:
    write(tmp_path, {"..data/clusters.yaml": CLUSTERS})
    (tmp_path / "clusters.yaml").symlink_to("..data/clusters.yaml")
    assert list(load_entities(tmp_path).clusters) == ["primary", "backup"]


def test_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbf" + CLUSTERS.encode())
    assert list(load_entities(tmp_path).clusters) == ["primary", "backup"]


SECRETS = {
    "wrong_value_type": "storage_options: {key: [hunter2]}",
    "another_problem_in_the_line": "{}\n{kind: cluster, storage_options: {key: 'hunter2'}, colour: red}",
    "misspelt_key": "storage_option: {key: hunter2}",
    "not_a_mapping": "storage_options: hunter2",
    "tag": "storage_options: {key: !!int hunter2}",
    "custom_tag": "storage_options: {key: !secret hunter2}",
    "alias": "properties: &s {a: hunter2}\nstorage_options: {key: *s}\ncolour: *s",
    "syntax_error": 'storage_options: {key: "hunter2',
    "undefined_alias": "storage_options: {key: *hunter2}",
    "several_lines": "storage_options:\n  key: [\n    hunter2,\n    x]",
    "merged": "<<: {storage_options: {key: [hunter2]}, colour: red}",
    "url_of_a_receiver": "notification: {to: [{url: slack://hunter2}]}",
    "receiver": "notification: {to: [slack://hunter2]}",
    "receivers": "notification: {to: slack://hunter2}",
    "notification": "notification: slack://hunter2",
    "url_for_a_name": "notification: {to: [{url: {env: slack://hunter2}}]}",
    "misspelt_notification": "notifications: {to: [{url: slack://hunter2}]}",
    "misspelt_receivers": "notification: {too: [{url: slack://hunter2}]}",
    "syntax_error_of_a_receiver": "notification: {to: [{url: slack://hunter2",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_secrets_are_never_shown(tmp_path: Path, text: str) -> None:
    kind = "feed" if "slack" in text else "cluster"
    text = text.removeprefix("{}\n") if text.startswith("{}") else f"kind: {kind}\nname: x\n{text}\n"
    with pytest.raises(InvalidDefinitionsError) as caught:
        load(tmp_path, {"a.yaml": text})
    assert "hunter2" not in str(caught.value)


def test_snippet_is_masked_with_its_columns_kept(tmp_path: Path) -> None:
    files = changed("clusters.yaml", "colo: east", "storage_options: {key: [hunter2]}")
    assert single(tmp_path, files).snippet == "storage_options: {key: [*******]}"


def test_long_lines_are_cut_around_the_caret(tmp_path: Path) -> None:
    tags = ", ".join(f"t{number}: x" for number in range(100))
    problem = single(
        tmp_path, changed("clusters.yaml", "colo: east", f"tags: {{{tags}, t: 5, {tags.replace('t', 'u')}}}")
    )
    line, caret = problem.excerpt.splitlines()
    assert len(line) <= 114
    assert line[caret.index("^")] == "5"


def test_the_pure_python_parser_does_as_well(tmp_path: Path) -> None:
    write(tmp_path / "right", FILES)
    write(tmp_path / "wrong", {"a.yaml": "[" * 1000, "b.yaml": "kind: fed\n"})
    script = (
        "import sys\n"
        "sys.modules['yaml.cyaml'] = None\n"
        "from falcon_assets.surface.cli.main import falcon\n"
        "falcon(['validate', sys.argv[1]])\n"
    )
    right, wrong = (
        subprocess.run(
            [sys.executable, "-c", script, folder], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        for folder in ("right", "wrong")
    )
    assert right.stdout == "2 clusters, 2 feeds, 1 process: no problems\n"
    assert wrong.stdout.splitlines()[0] == "wrong/a.yaml:1: not YAML: nested deeper than 64 levels"
    assert "wrong/b.yaml:1: kind: unknown kind 'fed' (did you mean 'feed'?)" in wrong.stdout
    assert "2 problems" in wrong.stdout
