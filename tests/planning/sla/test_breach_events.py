from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from falcon_assets.features.sla.breach_events import breach_event
from falcon_assets.model.sla import SlaLevel

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("level", "state", "reason"),
    [
        (SlaLevel.LOW, "OPEN", "in danger: low was over at 2026-01-01T00:00+00:00"),
        (SlaLevel.END, "OPEN", "missed: should_end_in was over at 2026-01-01T00:00+00:00"),
        (SlaLevel.HIGH, "MET", "met at 2026-01-01T01:00+00:00: high was over at 2026-01-01T00:00+00:00"),
        (SlaLevel.HIGH, "WITHDRAWN", None),
    ],
)
def test_what_is_said_of_a_breach(level: SlaLevel, state: str, reason: str | None) -> None:
    cleared = None if state == "OPEN" else START + timedelta(hours=1)
    found = breach_event("feed", "raw", "primary", START, level, START, state, cleared)
    assert (found.reason if found else None) == reason
