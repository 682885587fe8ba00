"""URLs of stores: what they say by themselves, before anybody asks the store."""

from __future__ import annotations

from pathlib import Path

_ALIASES = {"local": "file", "s3a": "s3", "abfss": "abfs", "gcs": "gs"}
"""Schemes that mean another one."""
OBJECT_STORES = frozenset({"s3", "abfs", "az", "gs"})
"""Schemes of stores without folders, of those that mean the same the one that counts."""

HDFS = frozenset({"hdfs", "webhdfs", "swebhdfs"})
"""Schemes of Hadoop's file system."""
_HDFS_PORT = ":8020"
"""Hadoop's port where ``hdfs://`` has none."""


def store_url(endpoint: str, home: Path) -> str:
    """The URL of an endpoint: a bare path is below ``home``, the ``FALCON_HOME``."""
    return endpoint if "://" in endpoint else f"file://{home.absolute() / endpoint.lstrip('/')}"


def url_path(url: str) -> str:
    """The path in a URL, which begins with a slash."""
    return "/" + url.partition("://")[2].partition("/")[2].strip("/")


def is_mounted(url: str) -> bool:
    """Whether a URL or bare path is on a mounted file system, and not on a store that is asked over the network."""
    return "://" not in url or canonical_url(url).startswith("file://")


def is_object_store(url: str) -> bool:
    """Whether a URL is on a store of objects, which has neither folders nor rename."""
    return canonical_url(url).partition("://")[0] in OBJECT_STORES if "://" in url else False


def is_hdfs(url: str) -> bool:
    """Whether a URL is on Hadoop's file system."""
    return "://" in url and canonical_url(url).partition("://")[0] in HDFS


def canonical_url(url: str) -> str:
    """The URL as it is compared with others: one scheme of those that mean the same, and no empty steps."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    host = host.removesuffix(_HDFS_PORT) if scheme.lower() == "hdfs" else host
    folders = [folder for folder in path.split("/") if folder not in ("", ".")]
    return "/".join([f"{_ALIASES.get(scheme.lower(), scheme.lower())}://{host}", *folders])
