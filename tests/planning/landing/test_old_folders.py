"""Passes: what lands in a folder at any time is found by a later pass, whatever ticks and crashes do in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.planning.old_folders import ALL_EVERY, REST_LONG, REST_SHORT, SLACK, FolderPass
from tests.properties import examples

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
T = "/raw/${YEAR}/${MONTH}/${DAY}"


def test_the_first_pass_lists_everything() -> None:
    folder_pass = FolderPass(T).next(NOW, tells_changes=True)
    assert folder_pass == FolderPass(T, began=NOW, lists_all=True)
    assert folder_pass.must_list(NOW - timedelta(days=9999))


def test_it_goes_on_where_it_is() -> None:
    folder_pass = FolderPass(T, began=NOW, folder="/raw/2013/01/02")
    assert folder_pass.next(NOW + timedelta(days=3), tells_changes=True) is folder_pass


@pytest.mark.parametrize(("tells", "rest"), [pytest.param(True, REST_SHORT), pytest.param(False, REST_LONG)])
def test_the_next_one_begins_after_a_rest(tells: bool, rest: timedelta) -> None:
    ended = FolderPass(T, began=NOW, folder="/raw/2013").ended()
    assert ended == FolderPass(T, before=NOW, all_before=NOW)
    assert ended.next(NOW + rest - SECOND, tells_changes=tells) is None
    following = ended.next(NOW + rest, tells_changes=tells)
    assert following is not None
    assert (following.began, following.folder, following.lists_all) == (NOW + rest, "", not tells)


def test_a_pass_lists_what_changed_since_the_one_before() -> None:
    folder_pass = FolderPass(T, began=NOW + REST_SHORT, lists_all=False, before=NOW, all_before=NOW)
    assert folder_pass.must_list(NOW - SLACK)
    assert not folder_pass.must_list(NOW - SLACK - SECOND)
    assert folder_pass.must_list(None)


def test_once_a_day_everything_is_listed() -> None:
    ended = FolderPass(T, before=NOW - REST_SHORT, all_before=NOW - ALL_EVERY)
    folder_pass = ended.next(NOW, tells_changes=True)
    assert folder_pass is not None
    assert folder_pass.lists_all
    assert folder_pass.ended().all_before == NOW


def test_after_a_pass_that_found_no_folder_the_next_one_lists_all() -> None:
    following = FolderPass(T, began=NOW, all_before=NOW).ended(is_empty=True).next(NOW + REST_SHORT, tells_changes=True)
    assert following is not None
    assert following.lists_all


def test_a_clock_that_was_put_back_delays_nothing() -> None:
    for folder_pass in (
        FolderPass(T, before=NOW + ALL_EVERY, all_before=NOW + ALL_EVERY),
        FolderPass(T, began=NOW + ALL_EVERY),
    ):
        anew = folder_pass.next(NOW, tells_changes=True)
        assert anew is not None
        assert (anew.began, anew.lists_all) == (NOW, True)


@pytest.mark.parametrize(
    ("folder", "is_through"),
    [
        ("/raw/2012", True),
        ("/raw/2012/12/31", True),
        ("/raw/2013", False),
        ("/raw/2013/01", False),
        ("/raw/2013/01/01", True),
        ("/raw/2013/01/02", True),
        ("/raw/2013/01/03", False),
        ("/raw/2013/02", False),
        ("/raw", False),
    ],
)
def test_what_it_is_through_with(folder: str, is_through: bool) -> None:
    assert FolderPass(T, began=NOW, folder="/raw/2013/01/02").is_through(folder) == is_through
    assert not FolderPass(T, began=NOW).is_through(folder)


@dataclass
class Folders:
    """Folders as a file server keeps them: what landed in each, and when it says that it changed."""

    landed: dict[str, set[int]] = field(default_factory=dict)
    changed: dict[str, datetime] = field(default_factory=dict)

    def land(self, folder: str, number: int, at: datetime) -> None:
        self.landed.setdefault(folder, set()).add(number)
        self.changed[folder] = at.replace(microsecond=0)  # some keep whole seconds only, or two


FOLDERS = [f"/raw/2013/01/{day:02}" for day in range(1, 8)]
STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(FOLDERS), st.integers(0, 99)), max_size=2),  # lands before this look
        st.integers(1, 4),  # how many folders the look has time for
        st.floats(0.5, 100),  # seconds to the next one
    ),
    min_size=1,
    max_size=60,
)


@given(STEPS, st.booleans(), st.integers(-int(SLACK.total_seconds()) + 2, 3600))
@examples(300)
def test_everything_is_found_by_the_pass_after_the_one_under_way(
    steps: list[tuple[list[tuple[str, int]], int, float]], tells: bool, skew: int
) -> None:
    """The clock of the file server is off by ``skew`` seconds, by no more than the slack where it is slow."""
    there, found, folder_pass, now = Folders(), set[tuple[str, int]](), FolderPass(T), NOW
    pending: dict[tuple[str, int], int] = {}
    passes = 0
    for lands, time, pause in [*steps, *[([], 4, 60.0)] * 40]:
        for folder, number in lands:
            there.land(folder, number, now + skew * SECOND)
            if (folder, number) not in found:
                pending.setdefault((folder, number), passes)
        following, budget = folder_pass.next(now, tells_changes=tells), time
        if following:
            folder_pass = following
            for folder in sorted(there.landed):
                if not budget:
                    break
                if folder_pass.is_through(folder):
                    continue
                if folder_pass.must_list(there.changed[folder] if tells else None):
                    found |= {(folder, number) for number in there.landed[folder]}
                    budget -= 1
                folder_pass = folder_pass.through(folder)
            else:
                folder_pass, passes = folder_pass.ended(), passes + 1
        # Of the passes that end after it landed, the first may have been beyond its folder: no more than that one.
        assert all(passes < landed_in + 2 for one, landed_in in pending.items() if one not in found)
        now += pause * SECOND
    assert found == {(folder, number) for folder, numbers in there.landed.items() for number in numbers}


def test_after_the_clock_was_set_back_everything_is_listed_once() -> None:
    """What changed since then seems to have changed before the last pass."""
    ended = FolderPass(T, before=NOW, all_before=NOW - ALL_EVERY / 2)
    following = ended.next(NOW - timedelta(hours=1), tells_changes=True)
    assert following is not None
    assert following.must_list(NOW - timedelta(minutes=50))
