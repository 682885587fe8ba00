"""Parameters are values, never YAML: what they hold adds nothing; what is wrong has the line of the template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.catalog.yaml_files.merging import canonical, said
from falcon_assets.catalog.yaml_files.yaml_text import as_documents
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.features.templates.definitions import Pack, Template
from falcon_assets.features.templates.packs import StoredPack, StoredTemplate, parsed_template
from falcon_assets.features.templates.values import given_values, made_of

PACK = StoredPack(Pack(kind="pack", name="ops"), Path("ops"), is_folder=True)
HEAD = "kind: template\nname: t\ndescription: Makes it\n"
ANY = """\
parameters:
  a: {}
  n: {type: integer, default: 3}
  f: {type: number, default: 1.5}
  yes: {type: boolean, default: true}
  many: {type: texts, optional: true}
  maybe: {optional: true}
  key: {secret: true, default: }
entities:
  - kind: feed
    name: "{{ a }}"
    description: "so {{a}} and {{ n }} and {{ yes }}"
    tags: {a: "{{ a }}", maybe: "{{ maybe }}"}
    n: "{{ n }}"
    f: "{{ f }}"
    yes: "{{ yes }}"
    many: "{{ many }}"
    gone: {maybe: ["{{ maybe }}"]}
    secret: {inner: "{{ key }}"}
"""


def stored(text: str) -> StoredTemplate:
    files = Files()
    read_file(Path("ops/t.yaml"), text.encode(), files)
    (document,) = files.documents
    template = parsed_template(document, files.problems)
    if template is None:
        raise InvalidDefinitionsError(files.problems)
    return StoredTemplate(PACK, template, document)


def rendered(text: str, **values: Any) -> list[Any]:
    one = stored(HEAD + text)
    documents = made_of(one, values)
    texts = as_documents(one.data for one in documents)
    assert said(texts) == [canonical(document.data) for document in documents]
    for document in documents:
        assert document.data.pop("template")["name"] == "ops/t"
    return [document.data for document in documents]


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidDefinitionsError) as error:
        stored(HEAD + text)
    return [str(one).removeprefix("ops/t.yaml:") for one in error.value.problems]


@given(st.text(), st.lists(st.text(min_size=1), min_size=1))
def test_no_value_adds_anything(a: str, many: list[str]) -> None:
    (entity,) = rendered(ANY, a=a, many=many)
    assert entity == {
        "kind": "feed",
        "name": a,
        "description": f"so {a} and 3 and true",
        "tags": {"a": a},
        "n": 3,
        "f": 1.5,
        "yes": True,
        "many": many,
    }


@pytest.mark.parametrize(
    "evil",
    [
        "x\nacl: {owner: me}",
        'x", acl: "y',
        "x}, {kind: cluster",
        "{{ n }}",
        "{{ key }}",
        "*anchor",
        "!!python/object/apply:os.system [id]",
        "null",
        "true",
        "1",
        "0755",
        "---\nkind: cluster",
        "# comment",
        "\u2028 \x85 \t",
        "${user()}",
    ],
)
def test_what_looks_like_yaml_stays_a_text(evil: str) -> None:
    (entity,) = rendered(ANY, a=evil, key={"env": "KEY"})
    assert (entity["name"], entity["tags"]) == (evil, {"a": evil})
    assert [*entity] == ["kind", "name", "description", "tags", "n", "f", "yes", "secret"]
    assert entity["secret"] == {"inner": {"env": "KEY"}}


def test_secrets_are_not_recorded() -> None:
    (document,) = made_of(stored(HEAD + ANY), {"a": "x", "key": {"env": "KEY"}, "n": 4})
    assert document.data["template"] == {"name": "ops/t", "version": 1, "parameters": {"a": "x", "n": 4}}


def test_a_list_makes_entities_for_each_of_its_items() -> None:
    body = """\
parameters: {tables: {type: names}, owner: {}}
entities:
  - for: table
    in: tables
    entities:
      - {kind: feed, name: "{{ owner }}-{{ table }}"}
      - {kind: process, name: "make-{{ table }}"}
  - {kind: cluster, name: "{{ owner }}"}
"""
    found = rendered(body, tables=["a", "b"], owner="me")
    names = [f"{one['kind']} {one['name']}" for one in found]
    assert names == ["feed me-a", "process make-a", "feed me-b", "process make-b", "cluster me"]


def test_aliases_of_a_template_are_filled_once_and_do_not_grow() -> None:
    levels = "".join(f"    l{n}: &l{n} [*l{n - 1}, *l{n - 1}]\n" for n in range(1, 12))
    body = 'parameters: {a: {}}\nentities:\n  - kind: feed\n    l0: &l0 ["{{ a }}"]\n' + levels
    one = stored(HEAD + body)
    (document,) = made_of(one, {"a": "x"})
    assert document.data["l1"] == [["x"], ["x"]]


def test_a_text_that_needs_what_is_left_out_is_told() -> None:
    body = 'parameters: {a: {optional: true}}\nentities: [{kind: feed, name: "x-{{ a }}"}]\n'
    with pytest.raises(InvalidDefinitionsError) as error:
        made_of(stored(HEAD + body), {})
    (problem,) = error.value.problems
    assert str(problem) == ("ops/t.yaml:5: entities[0].name: the parameter 'a' has no value, and this text needs it")


WRONG = {
    "unknown": (
        'parameters: {table: {}}\nentities: [{kind: feed, name: "{{ tabel }}", x: "{{ table }}"}]',
        ["5: entities[0].name: unknown parameter 'tabel' (did you mean 'table'?)"],
    ),
    "unused": (
        "parameters: {a: {}}\nentities: [{kind: feed}]",
        ["4: parameters.a: the parameter 'a' is not used"],
    ),
    "code": (
        """parameters: {a: {}}
entities: [{a: "{{ a }}", b: "{{ a | upper }}", c: "{{ 1 + 1 }}", d: "{% if a %}{{ a }}", e: "{{ a.b }}"}]""",
        [f"5: entities[0].{key}: only the name of a parameter can stand in {{{{ }}}}" for key in "bce"],
    ),
    "key": (
        'parameters: {a: {}}\nentities: [{kind: feed, "{{ a }}": 1}]',
        ["5: entities[0].{{ a }}: a parameter cannot stand in a key"],
    ),
    "secret_within_a_text": (
        'parameters: {a: {secret: true}}\nentities: [{kind: feed, x: "a {{ a }}"}]',
        ["5: entities[0].x: 'a' is a secret: it stands alone, not within a text"],
    ),
    "list_within_a_text": (
        'parameters: {a: {type: names}}\nentities: [{kind: feed, x: "a {{ a }}"}]',
        ["5: entities[0].x: 'a' is a list: it stands alone, not within a text"],
    ),
    "loop": (
        'parameters: {a: {}, b: {type: texts}}\nentities:\n- {for: a, in: a, with: 1, entities: ["{{ b }}"]}',
        [
            "6: entities[0].for: 'a' is a parameter: choose another name",
            "6: entities[0].in: unknown list 'a'; legal here: b",
            "6: entities[0].with: unknown key 'with'; legal here: for, in, entities",
            "6: entities[0].entities: must be a list of entities",
        ],
    ),
    "default": (
        "parameters: {a: {type: duration, default: dayz(3)}, n: {type: integer, default: x, enum: [1]}}\n"
        'entities: [{a: "{{ a }}", n: "{{ n }}"}]',
        [
            "4: parameters.a.default: is not a legal duration for this parameter",
            "4: parameters.n.default: is not a legal integer for this parameter",
        ],
    ),
    "type": (
        'parameters: {a: {type: durations}}\nentities: [{a: "{{ a }}"}]',
        [
            "4: parameters.a.type: 'durations' is not legal (did you mean 'duration'?); legal: text, integer, number, "
            "boolean, name, names, texts, path, frequency, duration, instant, zone"
        ],
    ),
    "pattern": (
        'parameters: {a: {pattern: "("}}\nentities: [{a: "{{ a }}"}]',
        ["4: parameters.a.pattern: '(' is not a regular expression"],
    ),
    "no_entities": ("entities: []", ["4: entities: must not be empty"]),
}


@pytest.mark.parametrize(("body", "said_of_it"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_in_a_template(body: str, said_of_it: list[str]) -> None:
    assert problems(body) == said_of_it


GIVEN = """\
parameters:
  name: {type: name}
  limit: {type: duration, default: days(3)}
  carrier: {enum: [AA, UA], optional: true}
  code: {pattern: "[A-Z]{2}", optional: true}
  rows: {type: integer, optional: true}
  key: {secret: true, optional: true}
entities: [{n: "{{ name }}", l: "{{ limit }}", c: "{{ carrier }}", d: "{{ code }}", r: "{{ rows }}", k: "{{ key }}"}]
"""


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ({"name": "a"}, {"name": "a"}),
        ({"name": "true", "rows": "4"}, {"name": "true", "rows": 4}),
        ({"name": "a", "key": "{env: KEY}"}, {"name": "a", "key": {"env": "KEY"}}),
    ],
)
def test_parameters_are_given_as_texts(texts: dict[str, str], values: dict[str, Any]) -> None:
    assert given_values(stored(HEAD + GIVEN), texts, None) == values


@pytest.mark.parametrize(
    ("texts", "said_of_it"),
    [
        ({}, ["ops/t.yaml:5: name: required key is missing"]),
        ({"name": "a", "limt": "x"}, ["ops/t.yaml:4: limt: unknown key 'limt' (did you mean 'limit'?)"]),
        ({"name": "a", "rows": "many"}, ["ops/t.yaml:9: rows: must be a whole number, not 'many'"]),
        (
            {"name": "a", "carrier": "AB"},
            ["ops/t.yaml:7: carrier: 'AB' is not legal; legal: AA, UA"],
        ),
        (
            {"name": "a", "key": "hunter2"},
            ["ops/t.yaml:10: key: must be {env: NAME}, {file: PATH} or {encrypted: ...}, not the secret itself"],
        ),
    ],
    ids=["missing", "misspelt", "type", "enum", "secret"],
)
def test_wrong_parameters_are_told(texts: dict[str, str], said_of_it: list[str]) -> None:
    with pytest.raises(InvalidDefinitionsError) as error:
        given_values(stored(HEAD + GIVEN), texts, None)
    assert [str(one) for one in error.value.problems] == said_of_it
    assert "hunter2" not in str(error.value)


def test_parameters_of_a_file_are_told_with_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("# comment\nlimit: days(3)\n")
    with pytest.raises(InvalidDefinitionsError) as error:
        given_values(stored(HEAD + GIVEN), {"rows": "many"}, file)
    assert [str(one) for one in error.value.problems] == [
        f"{file}:2: name: required key is missing",
        "ops/t.yaml:9: rows: must be a whole number, not 'many'",
    ]
    file.write_text("name: a\n# comment\nlimit: dayz(3)\n")
    with pytest.raises(InvalidDefinitionsError) as error:
        given_values(stored(HEAD + GIVEN), {}, file)
    (problem,) = error.value.problems
    assert str(problem).startswith(f"{file}:3: limit: 'dayz(3)' is not a frequency")
    assert given_values(stored(HEAD + GIVEN), {"limit": "days(4)"}, file) == {"name": "a", "limit": "days(4)"}


def test_a_schema_has_what_parameters_may_be() -> None:
    schema = stored(HEAD + GIVEN).template.model_of_parameters().model_json_schema()
    assert schema["required"] == ["name"]
    assert schema["properties"]["limit"]["default"] == "days(3)"
    assert schema["properties"]["limit"]["pattern"].startswith("^(minutes|hours")
    assert schema["properties"]["carrier"]["anyOf"][0]["enum"] == ["AA", "UA"]
    assert isinstance(Template.model_json_schema(), dict)
