"""The README's first feed and process, and the tutorial that goes on from there, in one shell as a reader has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import page, run_blocks, section

FIRST = "Your first feed and process"
TUTORIAL = "docs/tutorial.md"
LINEAGE = "docs/guides/lineage.md"
"""It goes on where the tutorial ends."""
CAPTURE = "docs/guides/capture.md"
"""And this goes on there."""


@pytest.mark.soak
def test_the_tutorial(checkout: Path, environ: dict[str, str]) -> None:
    shown = run_blocks([*section(FIRST), *page(TUTORIAL), *page(LINEAGE), *page(CAPTURE)], checkout, environ)
    assert "2 instances succeeded, 0 did not" in shown
    assert "waits for orders: orders 2024-05-01T11:00Z" in shown
    assert "  amount double from orders.amount\n" in shown
    assert "totals 2024-05-01T10:00Z on lab @" in shown.split("came from:")[0]
    for hour in ("09", "10"):
        assert (checkout / f".falcon/hello/data/lab/totals/2024-05-01/{hour}/_SUCCESS").is_file()
