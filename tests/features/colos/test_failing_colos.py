"""Colos that fail at random: what the front answers is what happens, now or once they are back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from sqlalchemy import delete, select

from falcon_assets.errors import FalconError, RefusedElsewhereError, UnknownEntityError
from falcon_assets.features.colos.asking import AskedColos, ColoAwayError, UnansweredError
from falcon_assets.features.colos.declaration import Colo
from falcon_assets.features.colos.making_up import CHANGES
from falcon_assets.features.colos.prism import Look, Prism
from falcon_assets.features.entities.operations import ApplyEntities, DeleteEntities, SubmitEntities, UpdateEntities
from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.features.entities.results import EntityChange, OperationResult
from falcon_assets.history.platform.open_ledger import tables_engine
from falcon_assets.history.tables import COLO_WANTED, COLOS_READ
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.operation import Operation
from falcon_assets.operations.paging import Page
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.settings import Settings
from tests.builders import cluster_yaml, feed_yaml, on
from tests.properties import examples

NAMES = ("east", "north", "west")
FEEDS = ("a", "b", "c")
ANN = Principal("ann", role=Role.EDITOR)


@dataclass
class ModelColos:
    """Colos as they are to a front: each has descriptions of feeds, refuses one of them, and fails as it is told."""

    trees: dict[str, dict[str, str]] = field(default_factory=lambda: {one: {} for one in NAMES})
    failing: dict[str, str] = field(default_factory=dict)

    def __call__(self, colo: Colo, principal: Principal | None, asked: Operation, *, only_data: bool = False) -> Any:
        how = self.failing.get(colo.name, "")
        if how == "away":
            raise ColoAwayError("away")
        if how == "deaf":
            raise UnansweredError("no answer")
        if isinstance(asked, ListEntities):
            return Page((), 0, None)
        result = self._change(colo.name, asked)
        if how == "mute":  # it was done, and nobody knows
            raise UnansweredError("no answer")
        return result

    def _change(self, colo: str, asked: Any) -> OperationResult:
        tree, word = self.trees[colo], CHANGES[type(asked)]
        before, after = dict(tree), dict(tree)
        for one in yaml.safe_load_all(asked.definitions or ""):
            if one is None or one["kind"] != "feed":
                continue
            if refuses(colo, one["description"]):
                raise RefusedElsewhereError("refused", 422)
            if word == "submit" and before.get(one["name"], one["description"]) != one["description"]:
                raise RefusedElsewhereError("another definition", 409)
            if word == "update" and one["name"] not in before:
                raise UnknownEntityError("not there")
            after[one["name"]] = one["description"]
        for name in asked.names:
            after.pop(name, None)
        self.trees[colo] = after
        changed = EntityChange("feed", "x", "unchanged" if after == before else "updated", "x")
        return OperationResult(
            word, "ann", "", datetime.now(UTC), False, (changed,), diff="x" if after != before else ""
        )


def refuses(colo: str, description: str) -> bool:
    return description == f"not in {colo}"


@pytest.fixture(scope="module")
def opened(settings: Settings) -> Iterator[Installation]:
    with open_installation(settings) as installation:
        yield installation


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "apply", "update", "delete", "heal"]),
        st.sampled_from(FEEDS),
        st.sets(st.sampled_from(NAMES), min_size=1),
        st.sampled_from(["one", "two", "not in east", "not in west"]),
        st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["away", "deaf", "mute"])),
    ),
    max_size=12,
)
OPERATIONS = {"submit": SubmitEntities, "apply": ApplyEntities, "update": UpdateEntities}


@given(steps=STEPS)
@example(steps=[("submit", "a", {"east"}, "one", {}), ("submit", "a", {"east"}, "one", {"east": "away"})])
@examples(100, suppress=[HealthCheck.function_scoped_fixture])
def test_what_the_front_answers_is_what_happens(opened: Installation, steps: list[Any]) -> None:
    engine = tables_engine(str(opened.settings.database_url))
    with engine.begin() as connection:
        connection.execute(delete(COLO_WANTED))
        connection.execute(delete(COLOS_READ))
    model = ModelColos()
    asked = AskedColos({name: Colo(name=name, url="http://localhost") for name in NAMES}, model)
    prism = Prism(asked, lambda: engine, lambda colo: Look({}, 0.0, None))
    lakes = "".join(cluster_yaml(f"{one}-lake", colo=one) for one in NAMES)
    expected: dict[str, dict[str, str]] = {one: {} for one in NAMES}
    with requests_from("rest", principal=ANN):
        prism.perform(opened, SubmitEntities(definitions=lakes))
        for word, name, colos, text, failing in steps:
            model.failing = failing
            if word == "heal":
                prism.making_up.heal()
                continue
            if word == "delete":
                operation: Any = DeleteEntities(names=(name,), kind="feed")
            else:
                declared = feed_yaml(name, *(on(f"{one}-lake") for one in sorted(colos)), description=text)
                operation = OPERATIONS[word](definitions=declared)
            with engine.connect() as connection:
                rows = [*connection.execute(select(COLO_WANTED))]
            settled = {(row.colo, row.name) for row in rows if row.present and not row.is_pending}
            try:
                answers = prism.perform(opened, operation).colos
            except FalconError:
                continue  # nothing has changed, and nothing will
            for one in answers:
                takes = word != "delete" and one.colo in colos
                own = expected[one.colo]
                was_there = word == "submit" and (one.colo, name) in settled
                if one.outcome in ("refused", "absent") or was_there:
                    continue
                if takes and not refuses(one.colo, text):
                    own[name] = text
                elif not takes:
                    own.pop(name, None)
                elif name in model.trees[one.colo]:  # it will refuse what is made up for
                    own[name] = model.trees[one.colo][name]
                else:
                    own.pop(name, None)
        model.failing = {}
        prism.making_up.heal()
        prism.making_up.heal()
    asked.close()
    assert model.trees == expected
