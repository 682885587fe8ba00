"""Finds where an HDFS answers over HTTP, which its URL for Hadoop does not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fsspec import AbstractFileSystem

from falcon_assets.storage.files.web_hdfs import WebHdfsFileSystem

ADDRESSES = "webhdfs"
_HTTP_PORT, _HTTPS_PORT = 9870, 9871


def open_hdfs(url: str, options: Mapping[str, Any]) -> tuple[AbstractFileSystem, str]:
    """Returns file system and path of a URL; asks nothing yet. ValueError: neither it nor an option names a host."""
    split = urlsplit(url.replace("%", "%25").replace("#", "%23").replace("?", "%3F"))
    others = {name: value for name, value in options.items() if name != ADDRESSES}
    addresses = options.get(ADDRESSES) or _address(split.scheme, split.hostname, split.port)
    host = split.netloc.rpartition("@")[2]
    path = "/" + url.partition("://")[2].partition("/")[2].strip("/")
    return WebHdfsFileSystem(addresses=addresses, root=f"{split.scheme}://{host}", **others), path


def _address(scheme: str, host: str | None, port: int | None) -> str:
    if not host:
        raise ValueError
    if scheme == "hdfs":
        return f"http://{host}:{_HTTP_PORT}"
    return f"https://{host}:{port or _HTTPS_PORT}" if scheme == "swebhdfs" else f"http://{host}:{port or _HTTP_PORT}"
