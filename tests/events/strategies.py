"""Any record, as hypothesis draws it."""

from __future__ import annotations

from datetime import UTC, timedelta

from hypothesis import strategies as st

from falcon_assets.base.texts import recorded
from falcon_assets.history.events.event_log import Fact
from falcon_assets.history.events.feed_instances import (
    FeedArchiveExpired,
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    FeedVersionEvicted,
    InstancesKept,
    InstancesLanded,
    KeptInstance,
    KeptVersion,
    PushRefused,
)
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import CameTooLate, FilesCopied, InstanceChanged, WorkDone
from falcon_assets.planning.instance_record import InstanceState, LateChange

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
WORDS = TEXT.map(recorded)
NAME = st.just("primary") | TEXT.filter(bool)
VERSION = st.text("0123456789abcdef", min_size=1)  # Dagster's tag takes no other characters
SIZE = st.integers(0, 2**63 - 1)
COUNT = st.integers(0, 2**40)
TIME = st.datetimes(timezones=st.just(UTC)).map(
    lambda moment: moment - timedelta(microseconds=moment.microsecond % 1000)
)
INSTANT = TIME.map(lambda moment: moment.replace(second=0, microsecond=0))
MAYBE_TEXT = st.none() | TEXT
REASON_DATA = st.none() | st.dictionaries(TEXT, st.recursive(MAYBE_TEXT | COUNT | st.booleans(), st.lists), max_size=3)
READ = st.builds(Consumption, TEXT, INSTANT, MAYBE_TEXT, MAYBE_TEXT, MAYBE_TEXT)
INPUTS = st.none() | st.dictionaries(TEXT, st.lists(READ, max_size=2).map(tuple), max_size=2)
LATE = st.lists(st.builds(LateChange, TEXT, TEXT, INSTANT, MAYBE_TEXT, TEXT), max_size=2).map(tuple)

AVAILABLE = st.builds(
    FeedInstanceAvailable,
    cluster=NAME,
    feed=NAME,
    instance=INSTANT,
    version=VERSION,
    seen_at=TIME,
    bytes=st.none() | SIZE,
    records=st.none() | SIZE,
    files=st.none() | SIZE,
    signature=MAYBE_TEXT,
    looked_before=st.none() | TIME,
    modified_at=st.none() | TIME,
    pushed=MAYBE_TEXT,
    push_event=st.none() | COUNT,
    process=MAYBE_TEXT,
    nominal=st.none() | INSTANT,
    inputs=INPUTS,
    late=LATE,
    path=MAYBE_TEXT,
    definition=st.none() | st.integers(1, 2**31 - 1),
    source_versions=st.none() | st.dictionaries(TEXT, MAYBE_TEXT, max_size=2),
    kept_versions=st.none() | st.lists(st.builds(KeptVersion, TEXT, TEXT), max_size=2).map(tuple),
    restored_by=MAYBE_TEXT,
    made_by=MAYBE_TEXT,
    environment=st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
)
FACTS: st.SearchStrategy[Fact] = st.one_of(
    AVAILABLE,
    st.builds(
        FeedInstanceEvicted,
        cluster=NAME,
        feed=NAME,
        instance=INSTANT,
        evicted=st.sampled_from(["delete", "archive"]),
        at=TIME,
        bytes=st.none() | SIZE,
        files=st.none() | SIZE,
        reason=WORDS,
        archived_to=MAYBE_TEXT,
        archive_cluster=MAYBE_TEXT,
    ),
    st.builds(FeedVersionEvicted, NAME, NAME, INSTANT, TEXT, TIME, WORDS, st.none() | SIZE),
    st.builds(
        FeedArchiveExpired,
        *(NAME, NAME, INSTANT, TEXT, TIME, st.none() | SIZE, WORDS, MAYBE_TEXT, MAYBE_TEXT),
    ),
    st.builds(PushRefused, NAME, NAME, TEXT, COUNT, WORDS),
    st.builds(
        InstanceChanged,
        *(TEXT, NAME, INSTANT, st.sampled_from(InstanceState), TIME, WORDS, INPUTS, LATE, REASON_DATA),
        definition=st.none() | st.integers(1, 2**31 - 1),
        before=st.none() | st.sampled_from(InstanceState),
    ),
    st.builds(CameTooLate, TEXT, NAME, INSTANT, TEXT, INSTANT, TEXT, TIME),
)
"""What is written into events and read back by the ledger."""
FOR_PEOPLE = st.one_of(
    st.builds(
        InstancesKept,
        COUNT,
        st.lists(st.builds(KeptInstance, INSTANT, WORDS, REASON_DATA), max_size=2).map(tuple),
        TIME,
    ),
    st.builds(InstancesLanded, COUNT, INSTANT, INSTANT, TIME),
    st.builds(WorkDone, st.floats(allow_nan=False, allow_infinity=False), MAYBE_TEXT),
    st.builds(FilesCopied, TEXT, COUNT, COUNT, COUNT, COUNT, TEXT),
)
"""What only people read."""
