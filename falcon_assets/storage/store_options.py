"""The options of a cluster's file system: the declared ones, with the values of references."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from typing import Any

from falcon_assets.base.texts import keep_secret
from falcon_assets.catalog.references import value_of
from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import StorageOption
from falcon_assets.model.reference import Reference
from falcon_assets.model.secret_values import option_values
from falcon_assets.model.store_url import is_hdfs

OBJECT_STORES = ("s3", "s3a")
"""Stores whose drivers would cache listings: other writers exist, so each listing has to be fresh."""

_SAYS_WHO = frozenset({"user", "token", "kerberos"})
_PATIENCE = {"connect_timeout": 5, "read_timeout": 10, "retries": {"mode": "standard", "total_max_attempts": 2}}
"""Of one request: with the driver's defaults, a server that never answers holds it for six minutes."""
ATTEMPTS = 3


def resolved_options(
    cluster: str, url: str, declared: Mapping[str, StorageOption], environ: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the options for fsspec, shown nowhere; raises StorageError if a secret is not available."""
    keep_secret(option_values(declared))
    options = {name: _resolved(cluster, name, value, environ) for name, value in declared.items()}
    if url.partition("://")[0] in OBJECT_STORES:
        options.setdefault("use_listings_cache", False)
        options["config_kwargs"] = _PATIENCE | dict(options.get("config_kwargs") or {})
    if is_hdfs(url) and not _SAYS_WHO.intersection(options):
        options["user"] = environ.get("HADOOP_USER_NAME") or getpass.getuser()  # as Hadoop's own clients do
    return options


def _resolved(cluster: str, option: str, value: object, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _resolved(cluster, f"{option}.{name}", inner, environ) for name, inner in value.items()}
    if not isinstance(value, Reference):
        return value
    found = value_of(value, environ)
    if found is None:
        raise StorageError(f"cluster {cluster!r}: storage option {option!r} needs {value}, which is not set")
    return found
