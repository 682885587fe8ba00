"""URLs of stores: what they say by themselves, before anybody asks the store."""

from __future__ import annotations

from pathlib import Path

_ALIASES = {"local": "file", "s3a": "s3", "abfss": "abfs", "gcs": "gs"}
"""Schemes that mean another one."""


def store_url(endpoint: str, home: Path) -> str:
    """The URL of an endpoint: a bare path is below ``home``, the ``FALCON_HOME``."""
    return endpoint if "://" in endpoint else f"file://{home.absolute() / endpoint.lstrip('/')}"


def is_mounted(url: str) -> bool:
    """Whether a URL or bare path is on a mounted file system, and not on a store that is asked over the network."""
    return "://" not in url or canonical_url(url).startswith("file://")


def canonical_url(url: str) -> str:
    """The URL as it is compared with others: one scheme of those that mean the same, and no empty steps."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    folders = [folder for folder in path.split("/") if folder not in ("", ".")]
    return "/".join([f"{_ALIASES.get(scheme.lower(), scheme.lower())}://{host}", *folders])
