"""Deliveries to a datasource without Spark: what its tasks do is done here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg2.extensions
import pyarrow as pa
import pytest

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import (
    LoadedPart,
    TargetWriting,
    WriteRequest,
    datasource_types,
)
from falcon_assets.model.transfer import Export

HOUR = datetime(2013, 1, 1, tzinfo=UTC)


def request(columns: Sequence[tuple[str, str]], hour: int = 0, execution: str = "", **declared: Any) -> WriteRequest:
    """An hour of ``orders`` to the table ``orders``, unless another is declared; one execution for each hour."""
    given = {"target": {"name": "shop", "table": declared.pop("table", "orders")}} | declared
    start = HOUR + timedelta(hours=hour)
    named = execution or f"execution of {start}"
    end = start + timedelta(hours=1)
    return WriteRequest(Export(**given), "orders", "primary", start, end, "UTC", f"version of {named}", columns, named)


def deliver(
    access: Access, asked: WriteRequest, *parts: pa.RecordBatch, last: Callable[[], None] = lambda: None
) -> int:
    """Delivers the parts as an export does, and returns how many rows it had."""
    with opened(access, asked) as writing:
        if writing.delivered is not None:
            return writing.delivered
        return writing.commit([loaded(writing, number, part) for number, part in enumerate(parts)], last)


@contextmanager
def opened(access: Access, asked: WriteRequest) -> Iterator[TargetWriting]:
    with datasource_types()[access.type].open_writing(access, asked) as writing:
        yield writing


def loaded(writing: TargetWriting, number: int, batch: pa.RecordBatch, attempt: int = 0) -> LoadedPart:
    """A part that was loaded."""
    return LoadedPart(number, attempt, writing.part.load(number, attempt, iter([batch] if batch.num_rows else [])))


@pytest.fixture
def as_in_workers() -> Iterator[None]:
    """Connections wait as they do in the workers of Spark, which can load."""
    before = psycopg2.extensions.get_wait_callback()
    psycopg2.extensions.set_wait_callback(None)
    yield
    psycopg2.extensions.set_wait_callback(before)
