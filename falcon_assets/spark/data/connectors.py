"""What Spark's connectors are told about object stores, where Spark reads and writes them itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_SECRETS = {"key": "access.key", "secret": "secret.key", "token": "session.token"}
"""Options of s3fs, and what s3a calls them."""


def connector_settings(protocols: tuple[str, ...] | str, path: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Settings of a session for one store, of its bucket only; none where its connector has to be told by others.

    What is declared nowhere the connector finds by itself: s3a looks into the environment of its own processes.

    Args:
        protocols: fsspec's names of the file system.
        path: Any path on it, as fsspec has it.
        options: What fsspec was given, with values from the environment put in.
    """
    if "s3" not in protocols:
        return {}
    client = options.get("client_kwargs") or {}
    found = {name: options[option] for option, name in _SECRETS.items() if options.get(option)}
    endpoint = options.get("endpoint_url") or client.get("endpoint_url")
    if endpoint:
        is_encrypted = urlsplit(endpoint).scheme != "http"
        found |= {"endpoint": endpoint, "path.style.access": "true"}
        found |= {"connection.ssl.enabled": str(is_encrypted).lower()}
    if region := client.get("region_name"):
        found["endpoint.region"] = region
    if options.get("anon"):
        found["aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    bucket = path.partition("/")[0]
    return {f"spark.hadoop.fs.s3a.bucket.{bucket}.{name}": str(value) for name, value in found.items()}
