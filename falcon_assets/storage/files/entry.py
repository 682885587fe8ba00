"""Fields of an entry of a listing, for every file system of fsspec."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified", "modificationTime")
"""The modification time in fsspec's file systems: local, sftp, hdfs; s3; abfs; gs; ftp; webhdfs."""
ETAGS = ("ETag", "etag", "md5Hash", "generation")
"""Fields that alone prove another content: S3, abfs, gs."""


def modified_at(entry: Mapping[str, Any]) -> datetime | None:
    """Returns the modification time, UTC; None if the listing has none."""
    value = next((entry[key] for key in MODIFIED if entry.get(key) is not None), None)
    try:
        if isinstance(value, int | float):
            seconds = value / 1000 if "modificationTime" in entry else value
            return datetime.fromtimestamp(seconds, UTC)
        moment = datetime.fromisoformat(value.replace("Z", "+00:00")) if isinstance(value, str) else value
    except (ValueError, OverflowError, OSError):
        return None  # a driver's own way to write times, or a time that no calendar has
    if not isinstance(moment, datetime):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
