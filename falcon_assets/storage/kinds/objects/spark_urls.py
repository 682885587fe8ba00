"""Names of objects for Spark's connectors."""

from __future__ import annotations

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore

_SCHEMES = {"s3": "s3a", "gs": "gs"}
"""Hadoop's schemes by those of fsspec. Azure's URLs for Hadoop need a part that fsspec does not have."""


def connector_scheme(store: ClusterStore) -> str | None:
    return _SCHEMES.get(store.fs.protocol if isinstance(store.fs.protocol, str) else store.fs.protocol[0])


def spark_url(store: ClusterStore, path: str) -> str:
    """Returns the URL of an absolute path; raises StorageError if no connector is known to work."""
    scheme = connector_scheme(store)
    if scheme is None:
        raise StorageError(
            f"cluster {store.cluster.name!r}: {store.endpoint} is read and written through folders that Spark shares "
            "with this machine, and this Spark shares none: use local[N], the server of `falcon spark start`, or a "
            "write endpoint that is mounted on all machines"
        )
    return f"{scheme}://{path}"
