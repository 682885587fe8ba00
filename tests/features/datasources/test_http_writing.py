"""Batches of rows to an HTTP service: their limits, their keys, and what is done about its answers."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.types.http import Http
from falcon_assets.features.datasources.types.http.writing import open_writing
from falcon_assets.model.datasource import DatasourceThrottle
from tests.features.datasources.deliveries import request
from tests.features.datasources.http_service import HttpService, http_service

COLUMNS = [("id", "bigint"), ("name", "string")]


@pytest.fixture
def service() -> Iterator[HttpService]:
    with http_service() as service:
        yield service


def access(service: HttpService, **driver: str) -> Access:
    return Access("api", "http", service.endpoint, DatasourceThrottle(), token="secret-token", driver=driver)


def batch(rows: Sequence[tuple[int, dict[str, Any]]]) -> pa.RecordBatch:
    """Rows with their buckets, as Spark gives them to a task."""
    buckets, texts = [one for one, _ in rows], [json.dumps(row) for _, row in rows]
    return pa.RecordBatch.from_arrays([pa.array(buckets, pa.int64()), pa.array(texts)], ["bucket", "row"])


def send(there: Access, *batches: pa.RecordBatch, execution: str = "one") -> int:
    asked = request(COLUMNS, execution=execution, table="v1/orders")
    with open_writing(there, asked) as writing:
        part = pickle.loads(pickle.dumps(writing.part))
        return int(part.load(0, 7, iter(batches)))


def test_rows_come_in_batches_of_a_limited_size(service: HttpService) -> None:
    rows = [(number // 10, {"id": number, "name": "é" * (number % 7)}) for number in range(30)]
    there = access(service, batch_rows="4", **{"header.X-Team": "east"})
    assert send(there, batch(rows[:13]), batch(rows[13:])) == 30
    assert sorted(service.rows, key=lambda row: row["id"]) == [row for _, row in rows]
    assert sorted(map(len, service.batches.values())) == [2, 2, 2, 4, 4, 4, 4, 4, 4]
    told = service.headers[0]
    assert told["Authorization"] == "Bearer secret-token" and told["X-Team"] == "east"
    assert (told["Falcon-Execution"], told["Falcon-Instance"]) == ("one", "orders 2013-01-01T00:00Z")
    assert told["Content-Type"] == "application/json"


def test_the_same_delivery_has_the_same_keys_however_its_rows_arrive(service: HttpService) -> None:
    rows = [(number // 10, {"id": number, "name": "x"}) for number in range(30)]
    there = access(service, batch_rows="4")
    send(there, batch(rows))
    first = {**service.batches}
    send(there, *(batch(rows[at : at + 7]) for at in range(0, 30, 7)))
    assert service.batches == first and {*service.sent.values()} == {2}
    send(there, batch(rows), execution="two")
    assert len(service.batches) == 2 * len(first)


def test_equal_rows_in_several_batches_are_not_taken_for_the_same_batch(service: HttpService) -> None:
    assert send(access(service, batch_rows="5"), batch([(0, {"id": 1, "name": "same"})] * 20)) == 20
    assert len(service.batches) == 4 and len(service.rows) == 20


def test_a_batch_has_no_more_bytes_than_the_service_takes(service: HttpService) -> None:
    rows = [(0, {"id": number, "name": "ü" * 20}) for number in range(20)]
    send(access(service, batch_bytes="1000"), batch(rows))
    assert len(service.rows) == 20 and 1 < len(service.batches) < 10
    assert all(int(one["Content-Length"]) <= 1000 for one in service.headers)
    with pytest.raises(DatasourceError) as found:
        send(access(service, batch_bytes="100"), batch([(0, {"id": 1, "name": "x" * 100})]))
    assert str(found.value) == (
        "datasource 'api': v1/orders: a row of orders 2013-01-01T00:00Z has 121 bytes, and driver.batch_bytes is 100"
    )


def test_a_busy_service_is_asked_again_after_the_time_that_it_says(service: HttpService) -> None:
    service.answers += [(429, {"Retry-After": "1"}), (503, {}), (500, {})]
    began = time.monotonic()
    assert send(access(service), batch([(0, {"id": 1, "name": "a"})])) == 1
    assert time.monotonic() - began >= 1
    assert [*service.sent.values()] == [4] and len(service.rows) == 1


def test_a_batch_that_is_refused_is_named(service: HttpService) -> None:
    rows = [(number // 2, {"id": number, "name": "a"}) for number in range(6)]
    service.takes = lambda rows: 422 if any(row["id"] == 3 for row in rows) else None
    with pytest.raises(DatasourceError) as found:
        send(access(service), batch(rows))
    (refused,) = service.sent.keys() - service.batches.keys()
    assert str(found.value) == (
        "datasource 'api': v1/orders: it answers 422 to batch 1.0 of orders 2013-01-01T00:00Z "
        f"(2 rows, Idempotency-Key {refused})"
    )
    assert service.sent[refused] == 1
    service.takes = lambda rows: None
    send(access(service), batch(rows))
    assert sorted(row["id"] for row in service.rows) == [*range(6)]


@pytest.mark.parametrize(("status", "said"), [(401, ": look at its credential"), (302, "")])
def test_other_answers_are_sentences(service: HttpService, status: int, said: str) -> None:
    service.takes = lambda rows: status
    with pytest.raises(DatasourceError, match=rf"it answers {status} to batch 0.0 of .*\){said}$"):
        send(access(service), batch([(0, {"id": 1, "name": "a"})]))


def test_limits_are_numbers_and_the_time_of_the_instance_is_a_column_of_its_own(service: HttpService) -> None:
    with pytest.raises(
        DatasourceError, match=r"^datasource 'api': driver.batch_rows must be a number above 0, not '0'$"
    ):
        send(access(service, batch_rows="0"))
    wanted = request(COLUMNS, table="v1/orders", partition="name")
    with pytest.raises(DatasourceError, match=r"^name is filled by the export"), open_writing(access(service), wanted):
        pass
    assert Http.loads == ("insert",)
    assert "secret-token" not in repr(replace(access(service), name="x"))
