"""What an entry of a listing tells of a file, whatever file system of fsspec lists it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified", "modificationTime")
"""What fsspec's file systems call the modification time: local, sftp, hdfs; s3; abfs; gs; ftp; webhdfs."""
ETAGS = ("ETag", "etag", "md5Hash", "generation")
"""What says by itself that a content is another one: S3, abfs, gs."""


def modified_at(entry: Mapping[str, Any]) -> datetime | None:
    """When a listing says that what it lists was modified, UTC; None where it does not say."""
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
