"""Others may write about our assets, and whatever they like: the ledger goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import dagster as dg
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy import Engine

from falcon_assets.history.events.event_log import Logged, asset_facts
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.folding.fold import fold
from falcon_assets.planning.instance_record import InstanceState
from tests.events.strategies import FACTS
from tests.ledger.histories import content, empty, history_of
from tests.properties import examples

T = datetime(2013, 1, 1, tzinfo=UTC)
STRANGE = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(2**63, 2**70),
        st.floats(),
        st.text(st.characters() | st.sampled_from("\0\ud800")),
        st.sampled_from(["", "2013-01-01", "2013-01-01T00:00", "0001-01-01T00:00+23:59", "9999-12-31T23:59-23:59"]),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abx") | st.text(), inner, max_size=2),
    max_leaves=5,
)
METADATA = st.one_of(
    STRANGE,
    st.sampled_from([dg.MetadataValue.md("x"), dg.MetadataValue.url("x"), dg.MetadataValue.asset(dg.AssetKey("x"))]),
    st.floats(0, 1e9).map(dg.MetadataValue.timestamp),
)
PARTS = st.text(min_size=1) | st.sampled_from(["primary", "raw", "\0", "\ud800"])


@st.composite
def events(draw: st.DrawFn) -> dg.AssetMaterialization | dg.AssetObservation:
    """An event that may look like ours and is not."""
    metadata: dict[str, Any] = {}
    for fact in draw(st.lists(FACTS, max_size=2)):
        metadata |= fact.metadata()
    for name in draw(st.lists(st.sampled_from(sorted(metadata)), max_size=3)) if metadata else ():
        metadata.pop(name, None)
    for name in draw(st.lists(st.sampled_from([*sorted(metadata), "instance", "state", "at"]), max_size=3)):
        metadata[name] = draw(METADATA)
    key = dg.AssetKey(draw(st.lists(PARTS, min_size=1, max_size=3)))
    kind = draw(st.sampled_from([dg.AssetMaterialization, dg.AssetObservation]))
    return kind(key, metadata=metadata, partition=draw(st.none() | st.text()))


@examples(40, suppress=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.lists(events(), min_size=1, max_size=5))
def test_whatever_others_write_is_folded(ledger: Engine, written: list[Any]) -> None:
    empty(ledger)
    logged = [
        Logged(number, fact, "run")
        for number, event in enumerate(written, 1)
        for fact in asset_facts(number, dg.deserialize_value(dg.serialize_value(event)), T)
    ]
    fold(ledger, history_of(logged))
    fold(ledger, history_of([Logged(one.event_id + 9, one.fact, one.run_id) for one in logged]))  # reads what is there
    content(ledger)


def test_late_data_may_be_anything() -> None:
    """What Dagster keeps as values of its own cannot even be gone through."""
    changed = InstanceChanged("p", "primary", T, InstanceState.SUCCEEDED, T)
    metadata = {**changed.metadata(), "late": dg.MetadataValue.asset(dg.AssetKey("x"))}
    written = dg.AssetMaterialization(dg.AssetKey(["primary", "out"]), metadata=metadata, partition="2013")
    facts = asset_facts(1, dg.deserialize_value(dg.serialize_value(written)), T)
    assert not any(isinstance(one, InstanceChanged) for one in facts)


def test_the_data_of_a_reason_may_be_anything() -> None:
    changed = InstanceChanged("p", "primary", T, InstanceState.FAILED, T, "why")
    metadata = {**changed.metadata(), "reason_data": dg.MetadataValue.asset(dg.AssetKey("x"))}
    written = dg.AssetMaterialization(dg.AssetKey(["primary", "out"]), metadata=metadata, partition="2013")
    facts = asset_facts(1, dg.deserialize_value(dg.serialize_value(written)), T)
    assert [one.reason_data for one in facts if isinstance(one, InstanceChanged)] == [None]


def test_a_reason_may_hold_what_the_database_cannot(engine: Engine) -> None:
    failed = InstanceChanged("p", "primary", T, InstanceState.FAILED, T, "bad \x00 and \udcff")
    (fact,) = asset_facts(1, failed.event(dg.AssetKey(["primary", "out"]), "2013"), T)
    assert fold(engine, history_of([Logged(1, fact, "run")])) == 1
    assert content(engine)["process_instances"][0].reason == r"bad \x00 and \udcff"
