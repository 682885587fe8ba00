"""What an instance lacks of ``latest`` and ``future`` where no instance exists that could come."""

from __future__ import annotations

from typing import Any

import pytest

from falcon_assets.features.triage.known import Work
from falcon_assets.features.triage.needs import needs_of
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.workloads import ProcessWorkload
from tests.builders import make_feed, make_process


class Empty:
    """Answers where nothing has landed."""

    def newest(self, *asked: object) -> set[object]:
        return set()

    available = newest

    def newer(self, *asked: object) -> None:
        return None


def lacking(window: str, nominal: str) -> tuple[list[str], list[str]]:
    span = {"start": "2013-01-01T03:00Z", "end": "2013-01-02T00:00Z"}
    feed = make_feed(clusters=[{"name": "primary", "validity": span}])
    inputs = [{"name": "last", "feed": feed.name, "start": window, "end": window}]
    every = {"start": "2013-01-01T00:00Z", "end": "2013-01-03T00:00Z"}
    process = make_process(inputs=inputs, outputs=[], clusters=[{"name": "primary", "validity": every}])
    workload = ProcessWorkload(process, "primary", {feed.name: feed})
    answers: Any = Empty()
    found = needs_of(Work(process.name, "primary", parse_instant(nominal)), workload, answers)
    return [str(missing) for _, missing in found.inputs], [str(one) for one in found.unnamed]


@pytest.mark.parametrize(
    ("window", "nominal", "expected"),
    [
        ("latest(0)", "2013-01-01T02:00Z", ([], ["last: raw-flights latest(0) to latest(0)"])),
        ("latest(0)", "2013-01-01T03:00Z", (["last: raw-flights 2013-01-01T03:00Z"], [])),
        ("future(0,3)", "2013-01-02T05:00Z", ([], ["last: raw-flights future(0,3) to future(0,3)"])),
    ],
    ids=["before the validity", "within it", "after it"],
)
def test_it_is_not_ready_where_no_instance_exists(window: str, nominal: str, expected: object) -> None:
    assert lacking(window, nominal) == expected
