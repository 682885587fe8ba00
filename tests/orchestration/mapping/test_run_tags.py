"""A run says by its tags which instances it carries, and reads them back; what others write there says nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.history.dagster_internals.tags import PARENT_RUN
from falcon_assets.history.mapping import run_tags
from falcon_assets.planning.instance_record import Launch
from falcon_assets.planning.workloads import LONGEST_RUN
from tests.builders import make_process, workload_of

T = datetime(2013, 1, 1, tzinfo=UTC)
WORKLOAD = workload_of(make_process())
NAMES = [value for name, value in vars(run_tags).items() if name.isupper() and isinstance(value, str)]
STRANGE = st.dictionaries(
    st.sampled_from([*NAMES, *(name.replace(".dagster/falcon_", "falcon/") for name in NAMES)]),
    st.text()
    | st.from_regex(r"[0-9]{1,12}( [0-9]{1,12})*")
    | st.sampled_from(["2013-01-01T00:00Z", "9999-12-31T23:59Z@9e999x"]),
)


@given(st.integers(0, 99), st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 9), st.booleans())
def test_tags_come_back(first: int, attempts: list[int], slots: int, late: bool) -> None:
    nominals = tuple(T + timedelta(hours=first + number) for number in range(len(attempts)))
    tags = run_tags.launch_tags(WORKLOAD, Launch(nominals, slots, late), attempts, "")
    assert run_tags.nominals_of(tags) == nominals
    assert run_tags.attempts_of(tags) == tuple(attempts)
    assert run_tags.attempts_of({**tags, PARENT_RUN: "another"}) == ()
    assert run_tags.slots_of(tags, 77) == slots
    assert (run_tags.LATE in tags) == late


def test_the_tags_of_the_longest_run_fit_into_the_index_of_tags() -> None:
    nominals = tuple(T + timedelta(hours=number) for number in range(LONGEST_RUN))
    tags = run_tags.launch_tags(WORKLOAD, Launch(nominals, LONGEST_RUN), [999] * LONGEST_RUN, "")
    assert max(len(key) + len(value) for key, value in tags.items()) < 2_600


@pytest.mark.parametrize(
    ("hours", "shown"),
    [([0], "2013-01-01T00:00Z"), ([0, 1, 5], "2013-01-01T00:00Z to 2013-01-01T05:00Z (3)")],
)
def test_the_list_of_runs_shows_the_instances(hours: list[int], shown: str) -> None:
    nominals = tuple(datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in hours)
    tags = run_tags.launch_tags(WORKLOAD, Launch(nominals, 1, False), [1] * len(hours), "")
    assert tags["falcon/instances"] == shown


@given(STRANGE)
def test_whatever_others_write_is_read(tags: dict[str, str]) -> None:
    nominals, attempts = run_tags.nominals_of(tags), run_tags.attempts_of(tags)
    assert len(attempts) in (0, len(nominals))
    assert run_tags.slots_of(tags, 3) >= 0
    assert run_tags.shown_at(tags, T).tzinfo is not None


@pytest.mark.parametrize(
    ("clock", "shown"),
    [("", T), ("2013-01-03T06:00Z", datetime(2013, 1, 3, 6, tzinfo=UTC)), ("nonsense", T)],
    ids=["real", "frozen", "of-somebody-else"],
)
def test_the_clock_of_a_run(clock: str, shown: datetime) -> None:
    assert run_tags.shown_at({run_tags.CLOCK: clock}, T) == shown
