"""A store of a cluster: its write endpoint, or a location that is a whole URL; paths never leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fsspec
from fsspec import AbstractFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster, ClusterLocations, StorageOption
from falcon_assets.model.store_url import canonical_url, is_hdfs, is_mounted, store_url, url_path
from falcon_assets.storage.errors import explanation, is_refusal
from falcon_assets.storage.files.files_on import files_on
from falcon_assets.storage.roots import Root, RootGuard
from falcon_assets.storage.store_options import ATTEMPTS, OBJECT_STORES, resolved_options

ADDRESSES = "webhdfs"
_HTTP_PORT, _HTTPS_PORT = 9870, 9871


def open_hdfs(url: str, options: Mapping[str, Any]) -> tuple[AbstractFileSystem, str]:
    """Returns file system and path of a URL; asks nothing yet. ValueError: neither it nor an option names a host."""
    from falcon_assets.storage.files.web_hdfs import WebHdfsFileSystem  # noqa: PLC0415 - its HTTP takes long to import

    split = urlsplit(url.replace("%", "%25").replace("#", "%23").replace("?", "%3F"))
    others = {name: value for name, value in options.items() if name != ADDRESSES}
    addresses = options.get(ADDRESSES) or _address(split.scheme, split.hostname, split.port)
    host = split.netloc.rpartition("@")[2]
    return WebHdfsFileSystem(addresses=addresses, root=f"{split.scheme}://{host}", **others), url_path(url)


def _address(scheme: str, host: str | None, port: int | None) -> str:
    if not host:
        raise ValueError
    if scheme == "hdfs":
        return f"http://{host}:{_HTTP_PORT}"
    return f"https://{host}:{port or _HTTPS_PORT}" if scheme == "swebhdfs" else f"http://{host}:{port or _HTTP_PORT}"


class ClusterStore:
    """The file system behind an endpoint of ``cluster``, or behind a URL; every path in and out is below its root.

    Environment variables of storage options are passed to fsspec and shown nowhere. ``root`` is a URL to use instead of
    an endpoint, with ``options`` (None: the cluster's). Without ``roots`` it is not checked whether it is away. Raises
    StorageError if it cannot be used, or a variable is not set.
    """

    def __init__(
        self,
        cluster: Cluster,
        home: Path,
        environ: Mapping[str, str],
        *,
        readonly: bool = False,
        root: str | None = None,
        options: Mapping[str, StorageOption] | None = None,
        roots: RootGuard | None = None,
    ) -> None:
        self.cluster = cluster
        self.root = root
        self.is_volume = root is None or root in [store_url(one, home) for one in cluster.interfaces.write.endpoints]

        def other(root: str | None) -> ClusterStore:
            return ClusterStore(cluster, home, environ, readonly=readonly, root=root, options=options, roots=roots)

        self._other = other  # what a closure knows of the environment is shown nowhere
        declared = cluster.interfaces.readonly if readonly else None
        what = "the location" if root else f"the {'readonly' if declared else 'write'} endpoint"
        url = root or store_url(cluster.interfaces.storage(readonly=readonly).endpoint, home)
        self._shown = _without_credentials(url)
        on_it = cluster.interfaces.write.has_working
        self._working = None if on_it else f"{home.absolute()}/working/{cluster.name}"
        own = options if root and options is not None else cluster.storage_options
        self.fs, root_path = _open(
            cluster.name, what, url, self._shown, resolved_options(cluster.name, url, own, environ)
        )
        self.files = files_on(self.fs)
        # A root that is itself a link is the operator's choice (a bigger disk); links below it must not leave it.
        self._root = self.files.real(root_path)
        self._roots = roots
        self.identity = Root(
            cluster=cluster.name,
            place=canonical_url(self._shown),
            shown=root.rstrip("/") if root and not self.is_volume else self._root if is_mounted(url) else self._shown,
            begins=root.rstrip("/") if root and not self.is_volume else self._root,
            path=self._root,
            files=self.files,
            may_mark=not readonly,
            named=root is not None or declared is not None,
        )

    fs: AbstractFileSystem

    def path(self, relative: str) -> str:
        """Returns the absolute path for :attr:`fs` of ``relative``, with or without a leading slash.

        Raises RootAwayError as :meth:`require_root`, and StorageError for one that leaves the root, by ``..`` or, on a
        local file system, by a symbolic link.
        """
        self.require_root()
        return self._path(relative)

    def require_root(self, *, claims: bool = False, afresh: bool = False) -> None:
        """Raises RootAwayError if the root is another one than before, or not there, unless it was never used.

        ``claims``: something is to be written, so the root is marked as ours. ``afresh``: ask now, also if that takes a
        request.
        """
        if self._roots is not None:
            self._roots.require(self.identity, claims=claims, afresh=afresh)

    def _path(self, relative: str) -> str:
        steps = [step for step in relative.split("/") if step not in ("", ".")]
        if ".." in steps or "\0" in relative:
            raise StorageError(f"cluster {self.cluster.name!r}: {relative!r} leaves the root {self._shown}")
        if not steps:
            return self._root
        path = "/".join([self._root.rstrip("/"), *steps])
        real = self.files.real(path)
        if real != self._root and not real.startswith(self._root.rstrip("/") + "/"):
            raise StorageError(
                f"cluster {self.cluster.name!r}: {relative!r} leaves the root {self._shown} by a symbolic link"
            )
        return path

    def url(self, relative: str) -> str:
        """Returns the URL for Spark (``file:///...``); the root may be away. Raises StorageError outside the root."""
        return str(self.fs.unstrip_protocol(self._path(relative)))

    def at(self, root: str | None) -> ClusterStore:
        is_here = root == self.root or (root is None and self.is_volume)
        return self if is_here else self._other(root)

    @property
    def volumes(self) -> tuple[ClusterStore, ...]:
        """The stores among which its instances are spread; itself, if they all lie here."""
        return (self,)

    def there(self) -> Sequence[ClusterStore]:
        """Returns the volumes that are not away; a store of one is not asked."""
        return self.volumes

    def is_known(self, relative: str) -> bool:
        """Whether the ledger knows an available instance there, also while the root is away."""
        return self._roots is not None and self._roots.knows(self.identity, relative)

    @property
    def without_tables(self) -> ClusterStore:
        return self

    def shown(self, relative: str) -> str:
        """Returns the place for messages: an absolute path, or a URL if the root is one; as :meth:`url`, it raises."""
        path = self._path(relative)
        return path if self.root is None or self.is_volume else f"{self.root.rstrip('/')}/{relative.strip('/')}"

    @property
    def endpoint(self) -> str:
        """Names what may fail to answer as a whole: the folder of a mounted store, the host of another one."""
        return self.files.endpoint(self._shown)

    @property
    def staging(self) -> str:
        """Absolute path where outputs are written before they are published, always on the store of the data."""
        return self.path((self.cluster.locations if self.is_volume else ClusterLocations()).staging)

    @property
    def working(self) -> str:
        """Absolute path for scratch data of workflows and Spark; below FALCON_HOME if it is not beside the data."""
        return self._working or self.path(self.cluster.locations.working)

    def __repr__(self) -> str:
        return f"ClusterStore({self.cluster.name!r}, {self._shown})"


def _open(cluster: str, what: str, url: str, shown: str, options: Mapping[str, Any]) -> tuple[AbstractFileSystem, str]:
    scheme = url.partition("://")[0]
    if is_mounted(url) and not url.startswith(f"{scheme}:///"):
        raise StorageError(f"cluster {cluster!r}: {what} {shown} needs three slashes: file:///folder")
    if "::" not in url and not is_hdfs(url) and scheme not in fsspec.available_protocols():
        raise StorageError(f"cluster {cluster!r}: {scheme!r} of {what} {shown} is not a known file system")
    try:
        if is_mounted(url):  # url_to_fs would take a "::" in the path for two file systems, one in the other
            fs = fsspec.filesystem("file", **options)
            root = fs._strip_protocol(url)
        elif is_hdfs(url):
            fs, root = open_hdfs(url, options)
        else:
            fs, root = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        raise StorageError(f"cluster {cluster!r}: cannot use {shown}: {error}{_extra(scheme)}") from error
    except Exception as error:
        # Drivers raise anything, and may quote their options: neither the text nor the cause is passed on.
        if is_refusal(error):  # some connect at once
            refused = PermissionError()
            raise explanation(cluster, f"open {shown}", refused) from refused
        raise StorageError(
            f"cluster {cluster!r}: cannot open {shown} ({type(error).__name__}); check its endpoint and storage_options"
        ) from None
    if scheme in OBJECT_STORES:
        fs.retries = ATTEMPTS
    return fs, str(root)


def _extra(scheme: str) -> str:
    extras = {"s3": "s3", "s3a": "s3", "abfs": "azure", "abfss": "azure", "az": "azure", "gs": "gcs", "gcs": "gcs"}
    return f"; pip install 'falcon-assets[{extras[scheme]}]'" if scheme in extras else ""


def _without_credentials(url: str) -> str:
    try:
        split = urlsplit(url)
        port = f":{split.port}" if split.port else ""
    except ValueError:
        return f"{url.partition('://')[0]}://..."
    return f"{split.scheme}://{split.hostname or ''}{port}{split.path}"
