"""Which versions go: a naive oracle says the same."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.feed import VersionRetention
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import StoredVersion, before, plan_versions
from falcon_assets.planning.reasons_to_keep import Protected
from tests.properties import examples

NOW = parse_instant("2013-03-31T12:00Z")
DAYS = [NOW - timedelta(days=number) for number in range(4)]
RULES = [
    None,
    *({"keep": keep, **more} for keep in (1, 2, 3) for more in ({}, {"for": "hours(30)"}, {"for": "months(1)"})),
]
TIMES = st.none() | st.integers(0, 60 * 24).map(lambda hours: NOW - timedelta(hours=hours))
KNOWN = st.dictionaries(st.tuples(st.sampled_from(DAYS), st.sampled_from("abcdef")), TIMES)


def stored(key: tuple[datetime, str]) -> StoredVersion:
    return StoredVersion(*key, f"/versions/{key[0]}/{key[1]}", "/versions")


KEYS = st.tuples(st.sampled_from(DAYS), st.sampled_from("abcdef"))
CRITICAL = Protected("primary/sums/2013-01-01T00:00Z@c", itself=False)


@given(st.sampled_from(RULES), KNOWN, KNOWN, st.sets(st.sampled_from(DAYS)), st.sets(KEYS), st.randoms())
@examples(300)
def test_what_goes_is_what_a_naive_reader_of_the_rule_says(rule, known, others, evicted, needed, chance) -> None:  # type: ignore[no-untyped-def]
    """``known`` is in the ledger, ``others`` is on the disk; what is in both may be both."""
    declared = None if rule is None else VersionRetention.model_validate(rule)
    there, protected = [stored(key) for key in others], dict.fromkeys(needed, CRITICAL)
    chance.shuffle(there)
    verdicts = {one.kept[:2]: one for one in plan_versions(there, declared, NOW, "UTC", known, evicted, protected)}
    assert verdicts.keys() == known.keys() | others.keys()
    for (nominal, version), verdict in verdicts.items():
        key = (nominal, version)
        if key not in others:
            assert (verdict.goes, verdict.reason, verdict.kept.path) == (True, "it is not there any more", "")
            continue
        at = known.get(key)
        later = [
            one
            for one in others
            if one[0] == nominal
            and one != key
            and (known.get(one) or datetime.max.replace(tzinfo=NOW.tzinfo), _rank(one))
            > (at or datetime.max.replace(tzinfo=NOW.tzinfo), _rank(key))
        ]
        goes = (
            declared is None
            or nominal in evicted
            or len(later) >= declared.keep
            or (declared.for_ is not None and at is not None and at < before(NOW, declared.for_, "UTC"))
        )
        assert verdict.goes == (goes and key not in needed), verdict
        assert verdict.kept_by == (CRITICAL if goes and key in needed else None)
        if verdict.kept_by:
            assert verdict.reason == "primary/sums/2013-01-01T00:00Z@c is critical, and was made from it"


def _rank(key: tuple[datetime, str]) -> int:
    """Of versions that were replaced at one moment the first by name counts as the last: any order would do."""
    return -ord(key[1])


def test_why() -> None:
    keys = {(DAYS[0], "a"): NOW, (DAYS[0], "b"): NOW - timedelta(days=1), (DAYS[0], "c"): NOW - timedelta(days=9)}
    rule = VersionRetention.model_validate({"keep": 2, "for": "hours(1)"})
    said = {one.kept.version: one.reason for one in plan_versions(map(stored, keys), rule, NOW, "UTC", keys, (), {})}
    assert said == {
        "a": "one of the last 2 that were replaced",
        "b": "replaced more than hours(1) ago (versions.for)",
        "c": "2 were replaced later (versions.keep)",
    }
    said = {one.kept.version: one.reason for one in plan_versions(map(stored, keys), None, NOW, "UTC", keys, (), {})}
    assert set(said.values()) == {"the feed keeps no versions"}
    said = {one.kept.version: one.reason for one in plan_versions(map(stored, keys), rule, NOW, "UTC", keys, DAYS, {})}
    assert set(said.values()) == {"its instance was evicted"}
