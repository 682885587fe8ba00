"""The README's reference tables against the models and the grammar: nothing is left out, nothing is made up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from falcon_assets.model.cluster import Cluster, EnvironmentValue
from falcon_assets.model.expression import SIGNATURES
from falcon_assets.model.feed import Feed, Locations, Table
from falcon_assets.model.process import Process
from falcon_assets.model.shared import Acl, Validity
from falcon_assets.model.workflow import engines
from falcon_assets.settings import load_settings

README = (Path(__file__).parents[2] / "README.md").read_text()
SHARED: dict[str, tuple[type[BaseModel], ...]] = {
    "validity": (Validity,),
    "acl": (Acl,),
    "locations": (Locations,),
    "table": (Table,),
    "workflow": engines(),
}
"""Models with a table of their own, by heading."""
TABLES = {"Cluster": (Cluster,), "Feed": (Feed,), "Process": (Process,), **SHARED}
_OWN_TABLE = {EnvironmentValue, *(model for models in SHARED.values() for model in models)}


def _rows(heading: str) -> dict[str, list[str]]:
    """First column of the table below a heading -> the other columns."""
    section = re.split(rf"^#+ {heading}$", README, flags=re.MULTILINE)[1]
    table = re.split(r"^#", section, flags=re.MULTILINE)[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("| `")]
    return {row[1].strip("`"): row[2:-1] for row in rows}


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Key path and field of everything that a table has to list: leaves, and links to other tables."""
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        nested = _models(field.annotation)
        if not nested or nested[0] in _OWN_TABLE:
            yield key, field
        else:
            many = "[]" if "tuple" in str(get_origin(field.annotation)) else ""
            yield from _fields(nested[0], f"{key}{many}.")


def _literals(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    return [value for part in get_args(annotation) for value in _literals(part)]


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_is_in_the_reference(heading: str) -> None:
    keys = dict.fromkeys(key for model in TABLES[heading] for key, _ in _fields(model))
    assert list(_rows(heading)) == list(keys)


@pytest.mark.parametrize("heading", [name for name in TABLES if name != "workflow"])
def test_defaults_and_choices_are_those_of_the_models(heading: str) -> None:
    rows = _rows(heading)
    for key, field in _fields(TABLES[heading][0]):
        kind, default = rows[key][0], rows[key][1].strip(" `")
        for choice in _literals(field.annotation):
            assert f"`{choice}`" in kind, key
        if field.is_required():
            assert default == "required", key
            continue
        value = field.get_default(call_default_factory=True)
        if value in (None, ""):
            assert default in ("", '""'), key
        elif isinstance(value, tuple):
            assert default == f"[{', '.join(value)}]", key
        else:
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            assert default.strip('"') == shown, key


def test_every_engine_is_in_the_reference() -> None:
    kinds = _rows("workflow")["engine"][0]
    assert sorted(re.findall(r"`(.+?)`", kinds)) == [
        choice for model in SHARED["workflow"] for choice in _literals(model.model_fields["engine"].annotation)
    ]


def test_every_function_of_the_expression_language_is_in_the_reference() -> None:
    listed = {re.split(r"\(", expression)[0]: expression for expression in _rows("Expressions")}
    assert set(listed) == set(SIGNATURES)
    for name, expression in listed.items():
        arguments = [part for part in expression[len(name) + 1 : -1].split(",") if part]
        assert len(arguments) == len(SIGNATURES[name][0]), expression


def test_every_setting_is_in_the_reference() -> None:
    """What settings.py reads, and nothing else that begins with FALCON_."""

    class Recording(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.add(key)
            return default

    asked: set[str] = set()
    load_settings(Recording())
    assert set(_rows("Settings")) == {name for name in asked if name.startswith("FALCON_")}
