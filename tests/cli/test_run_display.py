"""What a person sees of copies while they run."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console

from falcon_assets.instances.coordination.coordinator import Outlook
from falcon_assets.planning.instance_record import InstanceState, KeyedInstance
from falcon_assets.storage.copying.copy_task import CopyProgress
from falcon_assets.surface.cli.run_display import show_outcome, shown_on
from falcon_assets.surface.foreground.foreground import ForegroundResult


def test_a_copy_is_shown_from_its_first_second_to_its_end() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    with shown_on(console) as display:
        display.copying("quick", CopyProgress(4, 4, 4_000_000, 4_000_000, 0.5))
        for name in ("over", "going on"):
            display.copying(name, CopyProgress(1, 4, 1_000_000, 4_000_000, 1.0))
        display.copying("going on", CopyProgress(3, 4, 3_000_000, 4_000_000, 2.0))
        display.copying("over", CopyProgress(4, 4, 4_000_000, 4_000_000, 3.0))
    assert isinstance(console.file, io.StringIO)
    last = console.file.getvalue().splitlines()[-2]  # what follows shows the cursor again
    assert "going on: 3 of 4 files, 3.0 of 4.0 MB, 1.5 MB/s" in last
    assert "3/4" in last
    assert "over" not in last
    assert "quick" not in console.file.getvalue()


def test_a_log_has_a_line_when_something_begins() -> None:
    console = Console(file=io.StringIO(), force_terminal=False, width=160)
    with shown_on(console) as display:
        display.collected(0)
        display.collected(3)
        display.copying("quick", CopyProgress(1, 4, 1_000_000, 4_000_000, 0.5))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == ["looking for data, and for what is ready", "3 instances landed"]


def test_a_reason_is_shown_as_it_is() -> None:
    console = Console(file=io.StringIO(), width=40)  # and in one line
    at = datetime(2013, 1, 1, tzinfo=UTC)
    reason = "Spark does not read g[ab]/x[/y].json"  # neither brackets nor slashes are markup
    trouble = KeyedInstance(at, InstanceState.FAILED, reason, process="hourly", cluster="primary")
    show_outcome(console, ForegroundResult(Outlook((), {}, {}), 0, (trouble,), {}))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == f"hourly on primary 2013-01-01T00:00Z failed: {reason}\n"
