"""What is protected on a cluster, whatever history and people did, against a search that goes edge by edge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from falcon_assets.features.lineage.store import versions_of_instance
from falcon_assets.features.lineage.stored_lifecycle import SetStatus, protected_on, set_status, status_set
from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, KeptVersion
from falcon_assets.history.folding.fold import fold, rebuild
from falcon_assets.model.feed import LifecycleStatus
from tests.hours import hour
from tests.ledger.histories import empty, history_of
from tests.ledger.test_lineage import KEYS, STEPS, Key, Oracle, landed, made
from tests.properties import examples

STATUSES = st.dictionaries(KEYS, st.sampled_from(["critical", "validated"]), max_size=4)


def folded(ledger: Engine, facts: list[Fact]) -> None:
    empty(ledger)
    fold(ledger, history_of([Logged(number, fact, "run") for number, fact in enumerate(facts, 1)]))


def say(ledger: Engine, key: Key, status: LifecycleStatus) -> None:
    cluster, feed, instance, version = key
    with ledger.begin() as connection:
        for one in versions_of_instance(connection, feed, instance):
            if (one.cluster, one.version) == (cluster, version):
                set_status(connection, one, SetStatus(status, hour(1), "ann", "why"))


@examples(60)
@given(STEPS, STATUSES, st.sets(st.sampled_from("abc"), max_size=2))
def test_what_critical_versions_were_made_from_is_protected(
    ledger: Engine, facts: list[Fact], statuses: dict[Key, LifecycleStatus], critical_feeds: set[str]
) -> None:
    folded(ledger, facts)
    oracle = Oracle()
    for fact in facts:
        oracle.see(fact)
    for key, status in statuses.items():
        say(ledger, key, status)
    default: dict[bool, LifecycleStatus] = {True: "critical", False: "initial"}
    critical = {key for key in oracle.statuses if statuses.get(key, default[key[1] in critical_feeds]) == "critical"}
    needed = {one for key in critical for one in oracle.reached(key, up=True, depth=len(oracle.statuses))}
    present = {(*place, version) for place, version in oracle.present.items()}
    for cluster in ("primary", "backup"):
        with ledger.connect() as connection:
            found = protected_on(connection, cluster, ["a", "b"], critical_feeds)
        versions = {(cluster, feed, *key) for feed, of_feed in found.items() for key in of_feed.versions}
        assert versions == {key for key in needed if key[0] == cluster and key[1] in "ab"}
        instances = {(cluster, feed, instance) for feed, of_feed in found.items() for instance in of_feed.instances}
        there = {key for key in versions if key in present}
        there |= {key for key in versions if oracle.statuses[key] == "READ" and key[:3] not in oracle.present}
        assert instances == {key[:3] for key in there}
        for of_feed in found.values():
            for reason in of_feed.versions.values():
                assert str(reason).split(" is critical")[0] in {name(key) for key in critical}


def name(key: Key) -> str:
    return f"{key[0]}/{key[1]}/{key[2]:%Y-%m-%dT%H:%MZ}@{key[3]}"


def test_a_status_survives_a_rebuild_and_names_the_descendant(engine: Engine) -> None:
    raw, sums = ("primary", "a", hour(0), "v1"), ("primary", "b", hour(0), "v1")
    facts: list[Fact] = [landed(raw), made(sums, [raw])]
    folded(engine, facts)
    say(engine, sums, "critical")
    rebuild(engine, history_of([Logged(number, fact) for number, fact in enumerate(facts, 1)]))
    with engine.connect() as connection:
        (one,) = versions_of_instance(connection, "b", hour(0))
        assert status_set(connection, one) == SetStatus("critical", hour(1), "ann", "why")
        reason = protected_on(connection, "primary", ["a"], ())["a"].instances[hour(0)]
    assert reason.as_data() == {
        "kind": "protected",
        "text": "primary/b/2013-01-01T00:00Z@v1 is critical, and was made from it",
        "critical": "primary/b/2013-01-01T00:00Z@v1",
        "itself": False,
    }


def test_an_instance_stays_for_a_version_that_is_kept_beside_it(engine: Engine) -> None:
    """On object stores it is in the folder of the instance, and would go with it."""
    beside = (KeptVersion("v1", "/kept/v1"),)
    now = FeedInstanceAvailable(
        "primary", "a", hour(0), "v2", hour(1), process="p", nominal=hour(0), kept_versions=beside
    )
    folded(engine, [landed(("primary", "a", hour(0), "v1")), now])
    say(engine, ("primary", "a", hour(0), "v1"), "critical")
    with engine.connect() as connection:
        found = protected_on(connection, "primary", ["a"], ())["a"]
    assert found.versions.keys() == {(hour(0), "v1")}
    assert str(found.instances[hour(0)]) == "primary/a/2013-01-01T00:00Z@v1 is critical"
