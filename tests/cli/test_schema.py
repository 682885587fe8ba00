from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from benchmarks.entities import write_entities
from falcon_assets.catalog.yaml_files.documents import read_files
from falcon_assets.model.entity import KINDS
from falcon_assets.surface.cli.main import falcon
from tests.catalog.definition_files import FILES, write

_DEFINITIONS = Path(__file__).parents[2] / "entity_defs"


def schema(*kind: str) -> dict[str, Any]:
    result = CliRunner().invoke(falcon, ["schema", *kind], catch_exceptions=False)
    assert result.exit_code == 0
    parsed: dict[str, Any] = json.loads(result.output)
    return parsed


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


def documents(root: Path) -> Iterator[dict[str, Any]]:
    return (document.data for document in read_files(root).documents)


def messages(validator: Draft202012Validator, document: dict[str, Any]) -> list[str]:
    return [error.message for error in validator.iter_errors(document)]


@pytest.mark.parametrize("kind", [[], *([kind] for kind in KINDS)], ids=["any", *KINDS])
def test_schema_is_of_the_dialect_it_names(kind: list[str]) -> None:
    printed = schema(*kind)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(printed)


def test_one_of_all_kinds(validator: Draft202012Validator) -> None:
    there = {option["$ref"] for option in validator.schema["oneOf"]}
    assert there == {f"#/$defs/{model.__name__}" for model in KINDS.values()}
    assert set(validator.schema["discriminator"]["mapping"]) == set(KINDS)


def test_delivered_definitions_are_valid(validator: Draft202012Validator) -> None:
    found = list(documents(_DEFINITIONS))
    assert found
    assert [messages(validator, document) for document in found] == [[]] * len(found)


def test_test_definitions_are_valid(validator: Draft202012Validator, tmp_path: Path) -> None:
    write(tmp_path / "small", FILES)
    write_entities(tmp_path / "generated", feeds=4, processes=4)
    found = list(documents(tmp_path))
    assert len(found) == 5 + 10
    assert [messages(validator, document) for document in found] == [[]] * len(found)


FULL = """\
kind: feed
name: full
groups: [landing]
timezone: Europe/Berlin
frequency: days(1)
sla: {low: hours(2), high: hours(4)}
schema: "year int, carrier string"
options: {multiLine: "true"}
locations: {data: "/full/${YEAR}/${MONTH}/${DAY}"}
clusters:
  - name: primary
    type: source
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention: {limit: days(365), action: archive, archive_to: "/old/${YEAR}/${MONTH}/${DAY}"}
    partition: "${cluster.colo}"
    delay: minutes(40)
---
kind: process
name: full
frequency: days(1)
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
outputs: [{name: out, feed: full, instance: "today(0,0)"}]
workflow: {engine: spark-submit, path: app.jar, class: a.Main, args: ["${out}"]}
retry: {policy: exp-backoff, delay: minutes(10), attempts: 3, on_timeout: true}
late_process: {policy: backoff, delay: hours(1), inputs: [{input: x, workflow: {engine: pyspark, function: "a.b:c"}}]}
---
kind: cluster
name: full
interfaces:
  write: {endpoint: "s3://bucket"}
  execute: {endpoint: "sc://h:15002"}
  registry: {endpoint: "thrift://h:9083"}
storage_options: {key: {env: AWS_KEY}, anon: false, retries: 3, region: eu}
"""


def test_every_kind_of_value_is_valid(validator: Draft202012Validator, tmp_path: Path) -> None:
    found = list(documents(write(tmp_path, {"full.yaml": FULL})))
    assert [messages(validator, document) for document in found] == [[], [], []]


MISTAKES = {
    "unknown_key": ("name: primary\n", "name: primary\ncolour: red\n"),
    "unknown_key_below": ("{endpoint: data/primary}", "{endpoint: data/primary, port: 1}"),
    "missing_key": ("name: primary\n", ""),
    "number_for_a_text": ("colo: east", "colo: 1"),
    "unknown_kind": ("kind: cluster\nname: primary", "kind: cloister\nname: primary"),
    "bad_name": ("name: primary", "name: 1st"),
}


@pytest.mark.parametrize(("old", "new"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_found(validator: Draft202012Validator, tmp_path: Path, old: str, new: str) -> None:
    text = FILES["clusters.yaml"].partition("---")[0]
    assert text.count(old) == 1
    (document,) = documents(write(tmp_path, {"a.yaml": text.replace(old, new)}))
    assert messages(validator, document)


def test_unknown_keys_fail_in_every_mapping_of_a_declaration(validator: Draft202012Validator) -> None:
    models = {name: model for name, model in validator.schema["$defs"].items() if model["type"] == "object"}
    assert {"Feed", "FeedCluster", "Validity", "Retention", "Input", "SparkSqlWorkflow"} <= set(models)
    assert [name for name, model in models.items() if model["additionalProperties"] is not False] == []


def test_every_key_is_described() -> None:
    undescribed = {
        f"{name}.{key}"
        for name, model in schema()["$defs"].items()
        for key, value in model.get("properties", {}).items()  # words have none
        if "description" not in value and key != "kind" and key != "engine"
    }
    assert undescribed == set()


def test_unknown_kind_of_schema() -> None:
    result = CliRunner().invoke(falcon, ["schema", "fed"])
    assert result.exit_code == 2
    assert f"'fed' is not one of {', '.join(map(repr, KINDS))}" in result.output


def test_help_says_how_editors_use_it() -> None:
    text = CliRunner().invoke(falcon, ["schema", "--help"]).output
    assert "      # yaml-language-server: $schema=../.schema.json\n" in text
    assert "      falcon schema > entity_defs/.schema.json\n" in text
