"""Counts of the records in files, without Spark: from footers where the format has them, else line by line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from falcon_assets.model.feed import Feed
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.kinds.storage_kind import StorageKind

_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_UNREADABLE = (".snappy", ".lz4", ".deflate")
"""Compressed by Hadoop in a way of its own."""
_TABLE = "table"
_UTF_8 = ("", "utf-8", "utf8")


def can_count(feed: Feed, cluster: str) -> bool:
    """Whether its records can be counted there: by format and by options of Spark that the count follows."""
    if feed.table_on(cluster):
        return True
    options = _options(feed)
    is_text = feed.format in ("csv", "json", "text")
    is_plain = "linesep" not in options and options.get("encoding", "").lower() in _UTF_8
    is_many = feed.format == "json" and _is_on(options, "multiline")
    return feed.format in _COUNTS and not is_many and (is_plain or not is_text)


def count_records(kind: StorageKind, feed: Feed, path: str) -> int | None:
    """Returns the number of records of an instance as Spark has it; None: it is not there, or a file is not readable.

    Of an Iceberg table its manifests have it. Raises StorageError if the store fails.
    """
    is_table = feed.table_on(kind.store.cluster.name) is not None
    if is_table and (known := kind.records_known(path)) is not None:
        return known
    form = _TABLE if is_table else feed.format
    found = kind.source_files(path, feed.availability_flag, is_hidden)
    if found is None:
        return None
    store, records = kind.store, 0
    with explained(store.cluster.name, f"count the records of {path}"):
        for name in found.files:
            end = "" if form in _WHOLE else PurePosixPath(found.path(name)).suffix
            if end in _UNREADABLE:
                return None
            try:
                with _opened(store.fs, found.path(name), _CODECS.get(end)) as file:
                    records += _COUNTS[form](file, _options(feed))
            except (pa.ArrowException, csv.Error):
                return None
            except OSError as error:
                if error.errno is not None:
                    raise
                return None  # it is damaged, which pyarrow says without a number
    return records


@contextmanager
def _opened(fs: Any, path: str, codec: str | None) -> Iterator[Any]:
    with fs.open(path, "rb") as file:
        yield pa.CompressedInputStream(pa.PythonFile(file), codec) if codec else file


def _options(feed: Feed) -> dict[str, str]:
    return {name.lower(): value for name, value in feed.options.items()}


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def _text(file: Any) -> io.TextIOWrapper:
    """Every byte is a character, and every way to end a line ends one, as Hadoop reads lines."""
    return io.TextIOWrapper(file, encoding="latin-1", newline=None)


def _parquet(file: Any, options: Mapping[str, str]) -> int:
    return int(pyarrow.parquet.ParquetFile(file).metadata.num_rows)


def _orc(file: Any, options: Mapping[str, str]) -> int:
    return int(pyarrow.orc.ORCFile(file).nrows)


def _of_table(file: Any, options: Mapping[str, str]) -> int:
    """Parquet or ORC, whatever the feed says: other tables are not read."""
    is_orc = file.read(3) == b"ORC"
    file.seek(0)
    return _orc(file, options) if is_orc else _parquet(file, options)


def _json(file: Any, options: Mapping[str, str]) -> int:
    return sum(1 for line in _text(file) if not line.isspace())


def _lines(file: Any, options: Mapping[str, str]) -> int:
    return 1 if _is_on(options, "wholetext") else sum(1 for _ in _text(file))


def _csv(file: Any, options: Mapping[str, str]) -> int:
    comment = options.get("comment", "")
    if _is_on(options, "multiline"):
        separator, quote = options.get("sep") or options.get("delimiter") or ",", options.get("quote") or '"'
        escape = options.get("escape") or "\\"
        rows = csv.reader(
            _text(file), delimiter=separator, quotechar=quote, escapechar=None if escape == quote else escape
        )
        number = sum(1 for row in rows if row)
    else:
        lines = (one for one in _text(file) if not (comment and one.startswith(comment)))
        number = sum(1 for one in lines if not one.isspace())
    return max(number - _is_on(options, "header"), 0)


def _file(file: Any, options: Mapping[str, str]) -> int:
    return 1


_COUNTS: Mapping[str, Callable[[Any, Mapping[str, str]], int]] = {
    "parquet": _parquet,
    "orc": _orc,
    "json": _json,
    "text": _lines,
    "csv": _csv,
    "binaryFile": _file,
    _TABLE: _of_table,
}
_WHOLE = ("parquet", "orc", "binaryFile", _TABLE)
"""Formats whose files are not compressed as a whole."""
