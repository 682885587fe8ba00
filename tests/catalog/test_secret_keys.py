"""Which values of a document are hidden where it is shown."""

from __future__ import annotations

import pytest
import yaml

from falcon_assets.catalog.stored_tree import masked
from falcon_assets.catalog.yaml_files.secrets import masked_line, secret_values
from falcon_assets.model.entity import KINDS

SECRET = {"storage_options", "notification", "options"}
"""The last one may have been meant to be the first."""
LEGAL = {name for model in KINDS.values() for name in model.model_fields}


def hidden(key: str) -> bool:
    root = yaml.compose(f"{key}: {{to: hunter2}}")
    assert root is not None
    return [node.value for node in secret_values(root)] == ["hunter2"]


@pytest.mark.parametrize("key", sorted(LEGAL | {"location", "configuration"}))
def test_keys_of_entities(key: str) -> None:
    assert hidden(key) is (key in SECRET)


@pytest.mark.parametrize(
    "key", ["notifications", "notificaton", "Notify", "storage_option", "credential", "Credentials"]
)
def test_keys_that_were_meant(key: str) -> None:
    assert hidden(key)


def test_secret_properties_are_hidden_whatever_their_length_and_references_are_not() -> None:
    text = "kind: process\nproperties: {{jdbc.password: {}, threshold: '15', api_token: {{env: TOKEN}}}}\n"
    assert masked(text.format("hunter2")) == masked(text.format("hunter2-longer")) == text.format("*****")


def test_options_of_a_feed_are_no_storage_options() -> None:
    feed = "kind: feed\noptions: {header: 'true', password: hunter2}\n"
    assert masked(feed) == "kind: feed\noptions: {header: 'true', password: *****}\n"
    assert "hunter2" not in masked(feed.replace("feed", "cluster")) and "true" not in masked(feed.replace("feed", "x"))


DATASOURCE = """\
kind: datasource
name: shop
interfaces:
  readonly: {{endpoint: "x://h/d", credential: {{user: {0}, password: {{env: SHOP}}, token: {{file: /run/{1}}}}}}}
driver: {{sslmode: {0}, sslpassword: {{env: SSL}}}}
"""


def test_credentials_and_options_of_drivers_are_hidden_and_names_of_variables_and_files_are_not() -> None:
    assert masked(DATASOURCE.format("hunter2", "token")) == DATASOURCE.format("*****", "token")


def test_the_driver_of_another_kind_is_none() -> None:
    assert masked("kind: process\nproperties: {spark.driver.memory: 1g}\ndriver: x\n").count("*") == 0


def test_what_is_written_for_a_driver_is_hidden_in_lines_of_faults() -> None:
    lines = "driver:\n  sslmode: hunter2: x\n".splitlines()
    assert masked_line(lines, 1) == "  sslmode: ******** *"
    assert masked_line(["spark.driver.memory: 1g: x"], 0) == "spark.driver.memory: 1g: x"
