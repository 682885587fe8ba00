"""What an extra needs is there, or not."""

from __future__ import annotations

import pytest

from falcon_assets.base.installed import is_installed


@pytest.mark.parametrize(
    ("package", "there"),
    [("", True), ("falcon-assets[hive]", True), ("pytest", True), ("nobody-has-this", False), ("pytest[dev]", False)],
)
def test_what_an_extra_needs(package: str, there: bool) -> None:
    assert is_installed(package) == there
