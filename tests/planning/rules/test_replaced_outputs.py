"""Of what all instances write to one place the newest instance is there, whatever the order in which they are ready."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.planning.instance_record import RERUN, InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.reasons import NewerIsWritten
from tests.builders import make_feed, make_process, workload_of
from tests.hours import HOUR, START

TABLE = make_feed(name="delays", snapshot=True, locations={"data": "/delays"})


def situation(there: set[int], newest: int | None, **known) -> Situation:
    """An hourly process at 09:00 that writes a snapshot, whose inputs of some hours are there."""
    process = {name: known.pop(name) for name in ("order", "parallel") if name in known}
    workload = workload_of(make_process(**process), make_feed(), TABLE)
    return Situation(
        readiness=Readiness(workload),
        now=START + 9 * HOUR,
        until=None,
        since=known.pop("since", START + 9 * HOUR),
        first_open=0,
        records=known.pop("records", {}),
        slots_in_use=0,
        available={"raw-flights": {START + number * HOUR for number in there}},
        newest_written={} if newest is None else {"delays": START + newest * HOUR},
        **known,
    )


def test_what_a_later_instance_passed_is_skipped():
    found = decide(situation({0, 1, 5}, 4))
    assert [nominal.hour for launch in found.launches for nominal in launch.nominals] == [5]
    assert {nominal.hour for nominal, _ in found.skipped} == {0, 1, 2, 3}
    said = "snapshot delays has its instance 2013-01-01T04:00Z already, which an earlier one does not replace"
    assert {str(reason) for _, reason in found.skipped} == {said}


def test_nothing_is_skipped_while_the_process_is_suspended():
    assert not decide(situation({0}, 4, since=None)).skipped


def test_what_failed_is_not_tried_again():
    failed = InstanceRecord(START, InstanceState.FAILED, attempt=1, failures=1, ended=START + 8 * HOUR)
    assert START in dict(decide(situation({0}, 1, records={START: failed})).skipped)


def test_what_is_asked_for_is_over_with_that():
    done = InstanceRecord(START, InstanceState.SUCCEEDED, attempt=1)
    request = RerunRequest(RERUN, 1, 0, START + 8 * HOUR)
    found = decide(situation({0}, 1, records={START: done}, requests={START: request}))
    assert not found.launches
    assert [(nominal, type(reason)) for nominal, reason in found.timed_out] == [(START, NewerIsWritten)]


@given(
    st.sets(st.integers(0, 9)), st.none() | st.integers(0, 9), st.sampled_from(["FIFO", "LAST_ONLY"]), st.integers(1, 4)
)
def test_an_earlier_instance_never_starts_and_a_later_one_is_never_skipped_for_it(
    there: set[int], newest: int | None, order: str, parallel: int
):
    found = decide(situation(there, newest, order=order, parallel=parallel))
    started = [nominal.hour for launch in found.launches for nominal in launch.nominals]
    assert all(newest is None or number >= newest for number in started)
    assert all(launch.slots == 1 for launch in found.launches)
    assert len(found.launches) <= 1
    if order == "FIFO":
        assert {nominal.hour for nominal, _ in found.skipped} == set(range(newest or 0))
