"""The tables of counterparts: their keys are keys of the entities, and what has none says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from falcon_assets.features.falcon_xml.counterparts import KINDS
from falcon_assets.features.falcon_xml.rules import Rule
from falcon_assets.model.entity import KINDS as MODELS


def flat(rules: tuple[Rule, ...], around: str = "") -> Iterator[tuple[str, Rule]]:
    """All rules, with the whole key of each."""
    for rule in rules:
        if rule.rules:
            yield from flat(rule.rules, f"{around}{rule.key}.")
        else:
            yield f"{around}{rule.key}" if rule.key else "", rule


def models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [] if get_origin(annotation) is dict else [one for part in get_args(annotation) for one in models(part)]


def exists(model: type[BaseModel], key: str) -> bool:
    first, _, rest = key.partition(".")
    hints, name = get_type_hints(model), first.removesuffix("[]")
    hint = hints.get(name, hints.get(f"{name}_"))  # of a key that is a word of Python
    return hint is not None and (not rest or any(exists(inner, rest) for inner in models(hint)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_exists(kind: str) -> None:
    assert [key for key, _ in flat(KINDS[kind]) if key and not exists(MODELS[kind], key)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_no_counterpart_says_what_to_do(kind: str) -> None:
    assert [rule.source for key, rule in flat(KINDS[kind]) if bool(key) == bool(rule.advice)] == []
