"""The definitions to begin with are right, whatever the folder is called."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.first_entities import first_entities


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("my_pipelines", "my_pipelines"),
        ("a b.c", "a-b-c"),
        ("2013", "c-2013"),
        ("_x_", "c-_x_"),
        ("Ü", "c"),
        ("-", "c"),
        ("n" * 60, "n" * 39),
    ],
)
def test_they_have_no_problems_and_no_warnings(tmp_path: Path, folder: str, name: str) -> None:
    for file, text in first_entities(folder, datetime(2024, 5, 1, tzinfo=UTC)).items():
        (tmp_path / file).write_text(text)
    store = load_entities(tmp_path, strict=True)
    assert list(store.clusters) == [name]
    assert list(store.feeds) == ["orders", "totals"]
    assert [process.pipelines for process in store.processes.values()] == [(name,)]
