from __future__ import annotations

import pytest

from falcon_assets.errors import ExpressionError, FalconError, MissingInputsError, StorageError


@pytest.mark.parametrize(
    "error",
    [StorageError("in/bad\udcff"), ExpressionError("in/bad\udcff"), MissingInputsError("x", ["in/bad\udcff"])],
    ids=lambda error: type(error).__name__,
)
def test_a_text_can_be_stored_whatever_files_are_named(error: FalconError) -> None:
    assert str(error).encode().endswith(rb"in/bad\udcff")
