"""Plain values of definitions, as ``--json`` prints them."""

from __future__ import annotations

import pytest

from falcon_assets.features.entities.listing import hidden


@pytest.mark.parametrize("key", ["properties", "options"])
def test_what_is_secret_by_its_name_is_stars(key: str) -> None:
    said = {key: {"password": "hunter2", "header": "true", "url": "https://u:hunter2@h/"}}
    assert hidden(said) == {key: {"password": "*****", "header": "true", "url": "https://u:*****@h/"}}
