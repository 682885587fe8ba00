"""Which version an instance runs with."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.entities.definition_versions import EntityVersions, VersionSince
from tests.hours import hour
from tests.properties import examples

VERSIONS = [VersionSince(3, hour(2)), VersionSince(4, hour(5)), VersionSince(7, hour(5)), VersionSince(8, hour(9))]
HOURS = st.integers(0, 12).map(hour)
HISTORIES = st.lists(HOURS, min_size=1, max_size=6).map(
    lambda times: [VersionSince(number, since) for number, since in enumerate(sorted(times), 1)]
)


@pytest.mark.parametrize(
    ("nominal", "scheduled", "expected"),
    [
        pytest.param(hour(0), hour(3), 3, id="before it was scheduled: the one of that time"),
        pytest.param(hour(4), hour(3), 3, id="the one that held"),
        pytest.param(hour(5), hour(3), 7, id="of two at one time the later"),
        pytest.param(hour(8), hour(3), 7, id="until the next"),
        pytest.param(hour(11), hour(3), 8, id="the present one"),
        pytest.param(hour(0), hour(1), 3, id="scheduled before anything was recorded"),
        pytest.param(hour(0), hour(9), 8, id="scheduled with the present one"),
        pytest.param(hour(0), None, 8, id="never scheduled"),
    ],
)
def test_examples(nominal: datetime, scheduled: datetime | None, expected: int) -> None:
    assert EntityVersions(tuple(VERSIONS), scheduled).of(nominal) == expected


@examples(200)
@given(HISTORIES, HOURS, HOURS, st.none() | HOURS)
def test_any_history(versions: list[VersionSince], first: datetime, second: datetime, since: datetime | None) -> None:
    earlier, later = sorted((first, second))
    known = EntityVersions(tuple(versions), since)
    found = known.of(earlier), known.of(later)
    assert found[0] is not None and found[1] is not None
    assert found[0] <= found[1]  # a later instance never has an earlier definition
    assert set(found) <= {one.number for one in versions}
    if since is None:
        assert found[0] == versions[-1].number
    else:
        held = next(one for one in versions if one.number == found[0]).since
        assert held <= max(earlier, since) or found[0] == versions[0].number
        new = [*versions, VersionSince(len(versions) + 1, max(later, since, versions[-1].since) + (hour(1) - hour(0)))]
        assert EntityVersions(tuple(new), since).of(later) == found[1]  # what comes afterwards changes nothing
