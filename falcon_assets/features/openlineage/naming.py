"""Names of datasets by OpenLineage's specification.

A feed is one dataset on each cluster: its name is the place of its instances, without the parts that differ between
them. OpenLineage's own integration of Spark names the data in the same way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from openlineage.client.naming.dataset import ABFSS, GCS, HDFS, S3, DatasetNaming, Hive, LocalFileSystem

from falcon_assets.errors import ExpressionError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.feed import Feed
from falcon_assets.model.store_url import canonical_url, store_url
from falcon_assets.model.table_uri import TableUri
from falcon_assets.planning.instance_paths import InstancePaths

_VARIABLE = re.compile(r"\$\{\w+\}")
_LEFT_OVER = re.compile(r"[\W_]*|[^=]+=[\W_]*")
"""The rest of a folder named only by a time, or by a partition key and a time."""
_ENDS = re.compile(r"^[-_.]+|[-_.=]+$")
_SCHEMES, _PORTS = {"postgresql": "postgres"}, {"postgresql": 5432, "mysql": 3306}
"""Of databases, whose tables are named with a point."""
_AZURE = ".dfs.core.windows.net"


@dataclass(frozen=True)
class DatasetName:
    namespace: str
    name: str


def dataset_of(feed: Feed, cluster: Cluster, home: Path) -> DatasetName:
    """Returns the name of a feed on a cluster; ExpressionError where its template cannot be used."""
    paths = InstancePaths(feed, cluster)
    if feed.table_on(cluster.name):
        return _table(TableUri.parse(paths.template.text), cluster)
    root = paths.root or store_url(cluster.interfaces.write.endpoint, home)
    folders = [_VARIABLE.sub("", one) if "${" in one else one for one in paths.template.text.split("/")]
    varied = ["${" in one for one in paths.template.text.split("/")]
    kept = [
        _ENDS.sub("", one) if is_varied else one
        for one, is_varied in zip(folders, varied, strict=True)
        if one and not (is_varied and _LEFT_OVER.fullmatch(one))
    ]
    options = feed.locations_on(cluster.name).storage_options if paths.root else None
    account = (cluster.storage_options if options is None else options).get("account_name")
    return dataset_at("/".join([root, *kept]), account if isinstance(account, str) else None)


def dataset_at(url: str, account: str | None = None) -> DatasetName:
    """Returns the name of a URL without credentials, or of a local path; ``account`` is of Azure, if not in the URL."""
    known = canonical_url(url if "://" in url else f"file://{url}")
    scheme, _, rest = known.partition("://")
    host, _, path = rest.partition("/")
    if scheme == "file":
        return _named(LocalFileSystem(f"/{path}"))
    if scheme == "abfs" and (account or _AZURE in host):
        container, _, service = host.partition("@")
        return _named(ABFSS(container, service.removesuffix(_AZURE) or account or "", path or "/"))
    host = host.rpartition("@")[2]
    if scheme == "s3":
        return _named(S3(host, path or "/"))
    if scheme == "gs":
        return _named(GCS(host, path or "/"))
    if scheme == "hdfs":
        name, _, port = host.partition(":")
        return _named(HDFS(name, port or "8020", f"/{path}"))
    return DatasetName(f"{scheme}://{host}", f"/{path}")


def dataset_of_datasource(datasource: Datasource | None, name: str, dataset: str, *, write: bool) -> DatasetName:
    """Returns the name of a table, resource, path or topic of the datasource ``name``; None: it is not declared."""
    interface = datasource.interface(write=write) if datasource else None
    if datasource is None or interface is None:
        return DatasetName(f"falcon://{name}", dataset)
    split = urlsplit(interface.endpoint)
    scheme, path = _SCHEMES.get(split.scheme, split.scheme), split.path.strip("/")
    if not split.netloc:
        return DatasetName(interface.endpoint, dataset)  # a file with a database
    port = _PORTS.get(split.scheme)
    has_port = port is None or ":" in split.netloc.rpartition("]")[2]
    namespace = f"{scheme}://{split.netloc}" if has_port else f"{scheme}://{split.netloc}:{port}"
    joint = "." if split.scheme in _PORTS else "/"
    return DatasetName(namespace, joint.join(filter(None, (path, dataset.lstrip("/")))))


def _table(uri: TableUri, cluster: Cluster) -> DatasetName:
    registry = cluster.interfaces.registry
    if registry is None:
        raise ExpressionError(f"cluster {cluster.name!r} has no registry, which tables are in")
    split = urlsplit(registry.endpoint)
    if split.scheme == "thrift":
        return _named(Hive(split.hostname or "", str(split.port or 9083), uri.database, uri.table))
    port = f":{split.port}" if split.port else ""
    name = f"{split.fragment}.{uri.name}" if split.fragment else uri.name  # several catalogs are in one database
    return DatasetName(f"{split.scheme}://{split.hostname or ''}{port}{split.path}", name)


def _named(naming: DatasetNaming) -> DatasetName:
    return DatasetName(naming.get_namespace(), naming.get_name())
