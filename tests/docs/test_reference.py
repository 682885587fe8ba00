"""The reference: what is generated is as it has to be, and of what people write nothing is left out or made up."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from pydantic import TypeAdapter

from falcon_assets.features.datasources.types.mysql import column_types as mysql
from falcon_assets.features.datasources.types.postgresql import column_types as postgresql
from falcon_assets.features.datasources.types.sqlite import tables as sqlite
from falcon_assets.history import events
from falcon_assets.history.events.record import Record
from falcon_assets.instances.views.query import CODES
from falcon_assets.model.expression_functions import FUNCTIONS
from falcon_assets.settings import load_settings
from tests.processes import CHECKOUT


def test_what_is_generated_is_as_it_has_to_be() -> None:
    """In a process of its own: click keeps what other tests have asked commands for."""
    command = [sys.executable, "docs/generated.py", "--check"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), "run `make reference`"


def _first_column(page: str) -> list[str]:
    text = (CHECKOUT / "docs" / "reference" / page).read_text()
    return re.findall(r"^\| `(.+?)` \|", text, re.MULTILINE)


def test_every_function_of_the_expression_language_is_in_the_reference() -> None:
    listed = {re.split(r"\(", expression)[0]: expression for expression in _first_column("expressions.md")}
    assert set(listed) == set(FUNCTIONS)
    for name, expression in listed.items():
        arguments = [part for part in expression[len(name) + 1 : -1].split(",") if part]
        assert len(arguments) == len(FUNCTIONS[name].arguments), expression


def test_every_setting_is_in_the_reference() -> None:
    """What settings.py reads, and nothing else that begins with FALCON_."""

    class Recording(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.add(key)
            return default

    asked: set[str] = set()
    load_settings(Recording())
    of_servers = {"FALCON_TOKEN"}  # read when a server is asked
    assert set(_first_column("settings.md")) == {name for name in asked if name.startswith("FALCON_")} | of_servers


def test_every_key_of_an_event_is_in_the_reference() -> None:
    for module in iter_modules(events.__path__):
        import_module(f"{events.__name__}.{module.name}")
    schemas = [TypeAdapter(record).json_schema(mode="serialization") for record in Record.__subclasses__()]
    keys = {key for schema in schemas for key in schema["properties"]}
    assert len(keys) > 30
    page = (CHECKOUT / "docs" / "reference" / "events.md").read_text()
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def test_every_reason_by_which_instances_are_listed_is_in_the_guide() -> None:
    page = (CHECKOUT / "docs" / "guides" / "instances.md").read_text()
    named = {code for row in re.findall(r"^\| (`.+?`) \|", page, re.MULTILINE) for code in re.findall("`(.+?)`", row)}
    assert set(CODES) - named == set()


KINDS_OF_TYPES = {
    "PostgreSQL": postgresql.spark_type,
    "MySQL and MariaDB": mysql.spark_type,
    "SQLite": sqlite.spark_type,
}


def test_the_types_of_columns_in_the_reference_are_what_they_become() -> None:
    """Each type that is listed; the tests of each database have their values."""
    _, *sections = (CHECKOUT / "docs/reference/types.md").read_text().split("\n## ")
    assert [one.partition("\n")[0] for one in sections] == list(KINDS_OF_TYPES)
    listed = {one.partition("\n")[0]: _types_in(one) for one in sections}
    for name, types in listed.items():
        assert {one: KINDS_OF_TYPES[name](one) for one in types} == types
    assert set(postgresql.SPARK_TYPES) <= set(listed["PostgreSQL"])


def _types_in(section: str) -> dict[str, str]:
    """Type in the database -> type in a feed, of the rows of a table: one for each, or one for all of a row."""
    found = {}
    for row in re.findall(r"^\| (`.+?) \| (`.+?) \|", section, re.MULTILINE):
        there, here = (re.findall("`(.+?)`", cell) for cell in row)
        found |= dict(zip(there, here * len(there) if len(here) == 1 else here, strict=True))
    return found
