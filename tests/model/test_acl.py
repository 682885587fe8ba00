"""Modes of what is published."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from falcon_assets.model.shared import Acl


@pytest.mark.parametrize(
    ("written", "meant"), [("0755", "0755"), ("640", "640"), ("*", "*"), ("0x755", "0755"), ("0x640", "0640")]
)
def test_octal_digits(written: str, meant: str) -> None:
    assert Acl(owner="etl", permission=written).permission == meant


@pytest.mark.parametrize("written", ["x755", "0x855", "0x75", "0755 ", "rwx", ""])
def test_other_texts_are_refused(written: str) -> None:
    with pytest.raises(ValidationError):
        Acl(owner="etl", permission=written)
