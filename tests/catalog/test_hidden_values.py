"""What takes the place of secrets that are not recorded."""

from __future__ import annotations

import pytest

from falcon_assets.catalog.hidden_values import WITHOUT, as_recorded, with_present_values
from falcon_assets.catalog.recorded_entities import recorded_data
from falcon_assets.catalog.stored_tree import masked
from falcon_assets.errors import OldDefinitionError

THEN = """kind: process
description: a *** b
properties:
  db_password: 'old'
  url: jdbc:x://u:old@h/db
  key.secret: |
    old
    old
  factor: "2"
workflow: {args: ["--password=old", "a * b"]}
"""
NOW = {
    "properties": {"db_password": "it's new", "url": "jdbc:x://u:new@h/db", "key.secret": "new", "factor": "3"},
    "workflow": {"args": ["--password=new", "c"]},
}


def filled(text: str, now: object) -> object:
    return recorded_data("x", with_present_values(masked(text), now, "process", WITHOUT))


def test_they_come_from_the_present_definition_and_the_rest_stays() -> None:
    assert "old" not in masked(THEN)
    assert filled(THEN, NOW) == {
        "kind": "process",
        "description": "a *** b",
        "properties": {**NOW["properties"], "factor": "2"},
        "workflow": {"args": ["--password=new", "a * b"]},
    }


GONE = "secrets are not recorded but taken from the present definition, and the "
MISSING = {
    "no such key": (
        {**NOW, "properties": {**NOW["properties"], "db_password": None}},
        f"{GONE}present definition of the process has none there: properties.db_password; declare it again",
    ),
    "another host": (
        {**NOW, "properties": {**NOW["properties"], "url": "jdbc:x://u:new@other/db"}},
        f"{GONE}present definition of the process has none there: properties.url (a password in a "
        "URL); declare it again",
    ),
    "no such entity": (
        None,
        f"{GONE}process is not declared any more: properties.db_password, properties.url (a password in a URL), "
        "properties.key.secret, workflow.args.0 (a password in a URL); declare it again",
    ),
}


@pytest.mark.parametrize(("now", "why"), MISSING.values(), ids=MISSING)
def test_what_is_not_there_is_named(now: object, why: str) -> None:
    with pytest.raises(OldDefinitionError) as raised:
        filled(THEN, now)
    assert str(raised.value) == why


def test_of_entries_of_a_list_the_name_counts() -> None:
    text = "clusters: [{name: a, properties: {token: x}}, {name: b, properties: {token: y}}]\n"
    now = {"clusters": [{"name": "b", "properties": {"token": "1"}}, {"name": "a", "properties": {"token": "2"}}]}
    assert [one["properties"]["token"] for one in filled(text, now)["clusters"]] == ["2", "1"]  # type: ignore[index]


OLD = {
    "in clear": ("properties: {db_password: hunter2}\n", "properties: {db_password: *****}\n"),
    "stars of its length": ("storage_options: {key: ******}\n", "storage_options: {key: *****}\n"),
    "both, and other stars": (
        "storage_options: {key: ***}\nproperties:\n  token: hunter2\n  x: a ** b\n",
        "storage_options: {key: *****}\nproperties:\n  token: *****\n  x: a ** b\n",
    ),
    "options of a feed": ("kind: feed\noptions: {header: ****}\n", "kind: feed\noptions: {header: *****}\n"),
    "nothing": ("properties: {size: '1'} # ***\n", "properties: {size: '1'} # ***\n"),
}


@pytest.mark.parametrize(("text", "stars"), OLD.values(), ids=OLD)
def test_what_was_recorded_before_is_starred_as_it_is_now(text: str, stars: str) -> None:
    assert as_recorded(text) == stars
    assert as_recorded(stars) == stars
