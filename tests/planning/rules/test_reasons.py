"""The base of reasons: sentences and data from one declaration, and the names that are stored."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from falcon_assets.planning.reasons import Killed, NewerIsWritten, Reason, StoreAway, Undecidable

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
DECLARE = (
    "planning.reasons_to_keep",
    "instances.rules.waiting",
    "features.landing.store",
    "features.triage.reasons",
)
"""Modules with reasons of their own; two of a kind could not be told apart in the ledger."""


def test_the_sentence_and_the_data_derive_from_the_declaration() -> None:
    said = "snapshot s has its instance 2013-01-01T12:00Z already, which an earlier one does not replace"
    reason = NewerIsWritten("s", NOON)
    assert str(reason) == said
    assert reason.as_data() == {"kind": "newer_is_written", "text": said, "feed": "s", "newest": "2013-01-01T12:00Z"}


def test_braces_in_details_are_said_as_they_are() -> None:
    assert str(Undecidable("no {such} feed")) == "cannot be decided on: no {such} feed"


def test_a_reason_that_is_only_a_text_has_no_further_data() -> None:
    assert StoreAway("the disk is away").as_data() == {"kind": "store_away", "text": "the disk is away"}


@pytest.mark.parametrize(
    ("data", "is_it"),
    [(Killed("joe", "").as_data(), True), ({"kind": "suspended", "text": "x"}, False), ({}, False), (None, False)],
    ids=["its own", "of another kind", "empty", "none"],
)
def test_recorded_data_is_recognized(data: dict[str, str] | None, is_it: bool) -> None:
    assert Killed.is_in(data) is is_it


def test_no_two_reasons_are_of_one_kind() -> None:
    for one in DECLARE:
        importlib.import_module(f"falcon_assets.{one}")
    kinds = Counter(one.kind for one in _all(Reason))
    assert [kind for kind, number in kinds.items() if number > 1] == []


def _all(base: type[Reason]) -> Iterator[type[Reason]]:
    for one in base.__subclasses__():
        if one.__module__.startswith("falcon_assets."):
            yield one
            yield from _all(one)
