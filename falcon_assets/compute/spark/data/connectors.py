"""Spark's connectors for object stores: whether they exist, and their settings."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from falcon_assets.compute.spark.failures import SPARK_ERRORS, lacks_connector
from falcon_assets.compute.spark.sessions import application_id

_SECRETS = {"key": "access.key", "secret": "secret.key", "token": "session.token"}
_lock = threading.Lock()
_found: dict[tuple[str, str], bool] = {}


def has_connector(spark: SparkSession, scheme: str) -> bool:
    """Whether Spark itself can access object stores of a Hadoop scheme (``s3a``, ``gs``); cached, without network."""
    key = (application_id(spark), scheme)
    with _lock:
        if key not in _found:
            _found[key] = _has_classes(spark, scheme)
        return _found[key]


def _has_classes(spark: SparkSession, scheme: str) -> bool:
    try:
        # Of a single path Spark would say in its log, with a stack, that it is no sink of a stream.
        paths = [f"{scheme}:///{name}" for name in "ab"]
        spark.read.format("binaryFile").load(paths).schema  # noqa: B018 - Connect looks at it only then
    except SPARK_ERRORS as error:
        return not lacks_connector(error)  # what has the classes misses the name of a bucket
    return True


def connector_settings(protocols: tuple[str, ...] | str, path: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Returns the settings of a session for one bucket; empty: its connector has to be configured elsewhere.

    The connector finds undeclared values by itself: s3a searches the environment of its own processes. ``protocols``,
    ``path`` and ``options`` are fsspec's, with values from the environment filled in.
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
