"""Deliveries to an HTTP service: rows in batches, each with a key by which the service knows one that it has.

Which rows are in a batch depends only on the rows and on the limits: they are sorted by their text, and by a hash of
it. So all attempts at a delivery, on whatever executor, send the same batches with the same keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth
from urllib3.util import Retry

from falcon_assets.errors import DatasourceError, count_of
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.features.datasources.pace import Pace
from falcon_assets.model.instant import format_instant

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_ATTEMPTS, _SECONDS, _LONGEST_WAIT = 8, 60, 300
"""How often a batch is sent, how long an answer and the wait for the next attempt may take, in seconds."""
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Answers after which it is sent again."""
_ROWS, _BYTES = 1000, 1 << 20
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_FORMATS = (
    f"map('ignoreNullFields', 'false', 'timeZone', 'UTC', "
    f"'timestampFormat', \"{_TIME}XXX\", 'timestampNTZFormat', \"{_TIME}\")"
)


class _Batch(NamedTuple):
    """Rows in JSON that are sent at once; ``number`` is the bucket and its place in it."""

    number: str
    rows: Sequence[str]

    @property
    def body(self) -> bytes:
        return f"[{','.join(self.rows)}]".encode()


@contextmanager
def open_writing(access: Access, request: WriteRequest) -> Iterator[HttpWriting]:
    """Opens a delivery; raises DatasourceError where the limits of batches are none."""
    part = BatchPart(
        access,
        request.declared.target.table,
        request.execution,
        f"{request.feed} {format_instant(request.start)}",
        _limit(access, "batch_rows", _ROWS),
        _limit(access, "batch_bytes", _BYTES),
        request.rows_per_second,
    )
    if request.declared.partition in dict(request.columns):
        name = request.declared.partition
        raise DatasourceError(f"{name} is filled by the export, with the time of the instance: rename it in the feed")
    yield HttpWriting(part, request)


def _limit(access: Access, option: str, usual: int) -> int:
    said = access.driver.get(option, str(usual))
    if not (said.isascii() and said.isdecimal() and int(said)):
        raise DatasourceError(f"datasource {access.name!r}: driver.{option} must be a number above 0, not {said!r}")
    return int(said)


@dataclass(frozen=True)
class HttpWriting:
    """A delivery that is open. What a service was sent cannot be taken back: it is visible before the end."""

    part: BatchPart
    request: WriteRequest
    delivered: None = None

    def arranged(self, frame: DataFrame, parts: int) -> DataFrame:
        """Rows as JSON, sorted, with the number of their bucket; a bucket has about as many as a batch may have."""
        from pyspark.sql import functions as sf  # noqa: PLC0415 - datasources are known without Spark

        own = [sf.col("`" + name.replace("`", "``") + "`") for name in frame.columns]
        if filled := self.request.declared.partition:
            own.append(sf.lit(format_instant(self.request.start)).alias(filled))
        whole = sf.struct(*own).alias("whole")
        texts = frame.select(whole).select(sf.expr(f"to_json(whole, {_FORMATS})").alias("row"))
        buckets = max(1, -(-frame.count() // self.part.most_rows))
        numbered = texts.select(sf.expr(f"pmod(xxhash64(row), {buckets}L)").alias("bucket"), "row")
        return numbered.repartition(min(parts, buckets), "bucket").sortWithinPartitions("bucket", "row")

    def commit(self, loaded: Sequence[LoadedPart], last: Callable[[], None]) -> int:
        """All of it is there already; what must not be delivered any more is at least not recorded as delivered."""
        last()
        return sum(one.rows for one in loaded)


@dataclass(frozen=True)
class BatchPart:
    """Sends batches, in tasks of Spark.

    Attributes:
        instance: The feed and its time, for people.
        most_rows: Of a batch, ``most_bytes`` those of its JSON.
        rows_per_second: The share of a part; None: any number.
    """

    access: Access
    resource: str
    execution: str
    instance: str
    most_rows: int
    most_bytes: int
    rows_per_second: float | None

    def load(self, number: int, attempt: int, batches: Iterator[pa.RecordBatch]) -> int:
        """Returns how many rows part ``number`` has; raises DatasourceError, which names the batch."""
        rows, pace = 0, Pace(self.rows_per_second)
        with self._session() as session:
            for one in self._batches(batches):
                self._send(session, one)
                rows += len(one.rows)
                pace.moved(len(one.rows))
        return rows

    def key(self, batch: _Batch) -> str:
        """The same for all attempts at a delivery, and another one for everything else."""
        known = "\n".join((self.execution, batch.number, hashlib.sha256(batch.body).hexdigest()))
        return hashlib.sha256(known.encode()).hexdigest()[:32]

    def _batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[_Batch]:
        bucket, place, rows, size = -1, 0, list[str](), 1
        for batch in batches:
            for at, row in zip(batch.column("bucket").to_pylist(), batch.column("row").to_pylist(), strict=True):
                length = len(row.encode())
                if length + 2 > self.most_bytes:
                    most = f"driver.batch_bytes is {self.most_bytes}"
                    raise DatasourceError(f"{self._where}: a row of {self.instance} has {length} bytes, and {most}")
                if rows and (at != bucket or len(rows) == self.most_rows or size + length + 1 > self.most_bytes):
                    yield _Batch(f"{bucket}.{place}", rows)
                    place, rows, size = (place + 1 if at == bucket else 0), [], 1
                bucket = at
                rows.append(row)
                size += length + 1
        if rows:
            yield _Batch(f"{bucket}.{place}", rows)

    def _send(self, session: requests.Session, batch: _Batch) -> None:
        key = self.key(batch)
        url = f"{self.access.endpoint.rstrip('/')}/{self.resource.lstrip('/')}"
        named = f"batch {batch.number} of {self.instance} ({count_of(len(batch.rows), 'row')}, Idempotency-Key {key})"
        try:
            answer = session.post(
                url, data=batch.body, headers={"Idempotency-Key": key}, timeout=_SECONDS, allow_redirects=False
            )
        except requests.RequestException as error:
            said = type(error).__name__
            raise DatasourceError(f"{self._where}: no answer to {named} in {_ATTEMPTS} attempts ({said})") from None
        if answer.status_code >= 300:
            hint = ": look at its credential" if answer.status_code in (401, 403) else ""
            tried = f" in {_ATTEMPTS} attempts" if answer.status_code in _AGAIN else ""
            raise DatasourceError(f"{self._where}: it answers {answer.status_code} to {named}{tried}{hint}")

    def _session(self) -> requests.Session:
        made = requests.Session()
        retry = _Waiting(
            _ATTEMPTS - 1,
            status_forcelist=_AGAIN,
            allowed_methods=None,  # the key makes sending it again safe
            redirect=False,
            backoff_factor=0.5,
            backoff_max=_LONGEST_WAIT,
            backoff_jitter=0.5,
            raise_on_status=False,
        )
        for scheme in ("https://", "http://"):
            made.mount(scheme, HTTPAdapter(max_retries=retry))
        own = {
            key.removeprefix("header."): said for key, said in self.access.driver.items() if key.startswith("header.")
        }
        made.headers.update(
            {
                "Content-Type": "application/json",
                "Falcon-Execution": self.execution,
                "Falcon-Instance": self.instance,
                **own,
            }
        )
        made.auth = self._login  # nothing of ~/.netrc in place of it
        return made

    def _login(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        access = self.access
        if access.token:
            request.headers["Authorization"] = f"Bearer {access.token}"
        elif access.user is not None:
            return HTTPBasicAuth(access.user.encode(), (access.password or "").encode())(request)
        return request

    @property
    def _where(self) -> str:
        return f"datasource {self.access.name!r}: {self.resource}"


class _Waiting(Retry):
    """Waits as long as a service says with ``Retry-After``, up to a limit."""

    def get_retry_after(self, response: Any) -> float | None:
        said = super().get_retry_after(response)
        return min(said, _LONGEST_WAIT) if said else said
