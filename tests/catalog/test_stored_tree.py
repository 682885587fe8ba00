"""Texts of definitions without the values of storage options."""

from __future__ import annotations

import pytest

from falcon_assets.catalog.stored_tree import has_hidden_values, masked

SECRETS = {
    "plain": "storage_options: {key: hushed}\n",
    "quoted": "storage_options: {key: 'hushed'}\n",
    "as JSON": '{"storage_options":{"key":"hushed"}}\n',
    "one character": "storage_options: {key: h}\n",
    "of several lines": 'storage_options:\n  key: "hushed\n    hushed"\n',
    "a block": "storage_options:\n  key: |\n    hushed\nname: x\n",
    "in a list": "storage_options:\n  - hushed\n",
    "by an alias": "description: &a hushed\nstorage_options: {key: *a}\n",
    "with an anchor": "storage_options:\n  key: &a hushed\n  other: *a\n",
    "lines end as in Windows": "name: x\r\nstorage_options: {key: hushed}\r\n",
    "lines end in CR": "name: x\rstorage_options: {key: hushed}\r",
    "next line before it": "# a\x85# b\nstorage_options: {key: hushed}\n",
    "line separator before it": "# a\u2028# b\nstorage_options: {key: hushed}\n",
    "beyond the basic plane": '"\U0001f600": x\nstorage_options: {"\U0001f600": hushed}\n',
    "of a receiver": "notification: {on: [FAILED], to: [{url: hushed}]}\n",
    "directives are missing": "storage_options: {key: !y!str hushed}\n",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_shown_in_no_layout_and_known_to_be_hidden(text: str) -> None:
    shown = masked(text)
    assert "hush" not in shown
    assert has_hidden_values(shown)


@pytest.mark.parametrize(
    "text",
    [
        "storage_options: {key: {env: AWS_KEY}, other: }\n",
        "storage_options: {}\r\nname: x\r\n",
        "notification: {on: [FAILED], to: [{url: {env: HOOK}}]}\n",
        "name: '***'\ndescription: nothing to hide\n",
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert masked(text) == text
    assert not has_hidden_values(text)


@pytest.mark.parametrize("text", [text for name, text in SECRETS.items() if name != "directives are missing"])
def test_nothing_is_told_of_the_length_of_a_secret(text: str) -> None:
    assert masked(text.replace("hushed", "hushed and more")) == masked(text)


def test_a_password_in_a_url_is_for_nobodys_eyes() -> None:
    text = 'properties: {url: "jdbc:postgresql://h/db?user=a&password=hunter2"}\n'
    assert masked(text) == 'properties: {url: "jdbc:postgresql://h/db?user=a&password=*****"}\n'


@pytest.mark.parametrize("url", ["jdbc:x://h/db?password=${db_password}", "https://user:${db_password}@h/"])
def test_a_reference_to_a_password_is_none(url: str) -> None:
    assert masked(f'properties: {{url: "{url}"}}\n') == f'properties: {{url: "{url}"}}\n'
