"""What the graph forgets, against the rule said once more for each version."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.lineage.pruning_rules import expired
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.version_columns import VersionStatus as S
from tests.properties import examples

T = parse_instant("2013-01-01T00:00Z")
NUMBERS = st.integers(0, 7)


@st.composite
def versions(draw: st.DrawFn) -> list[Version]:
    found = []
    for number in range(8):
        status = draw(st.sampled_from(S))
        is_gone = status in (S.REPLACED, S.EVICTED)
        ended = T + timedelta(days=draw(st.integers(-2, 2))) if is_gone else None
        archive = draw(st.sampled_from([None, "/archive"])) if status is S.EVICTED else None
        kept = draw(st.sampled_from([None, "/kept"])) if status is S.REPLACED else None
        found.append(
            Version(
                *("primary", "f", T, f"v{number}"),
                number=number,
                status=status,
                ended_at=ended,
                archived_to=archive,
                kept_at=kept,
            )
        )
    return found


@examples(300)
@given(versions(), st.sets(st.tuples(NUMBERS, NUMBERS), max_size=12), st.sets(NUMBERS))
def test_what_has_been_gone_for_long_and_nothing_needs(
    known: list[Version], edges: set[tuple[int, int]], protected: set[int]
) -> None:
    found = {one.number for one in expired(known, edges, protected, T)}

    def goes(one: Version) -> bool:
        if one.number in protected or one.status is S.AVAILABLE or one.kept_at or one.archived_to:
            return False
        if one.status is S.READ:
            made = [known[output] for output, read in edges if read == one.number]
            return all(output.status is not S.READ and goes(output) for output in made)
        return one.ended_at is not None and one.ended_at < T

    assert found == {one.number for one in known if goes(one)}
