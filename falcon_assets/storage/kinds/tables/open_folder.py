"""Opens the folder of a table, on any store."""

from __future__ import annotations

from falcon_assets.errors import StorageError
from falcon_assets.model.store_url import canonical_url, is_hdfs, is_object_store
from falcon_assets.storage.files.web_hdfs import WebHdfsFileSystem
from falcon_assets.storage.kinds.tables.hdfs_folder import HdfsFolder
from falcon_assets.storage.kinds.tables.table_folder import MountedFolder, ObjectFolder, TableFolder
from falcon_assets.storage.tables.table_store import TableStore


def table_folder(tables: TableStore, name: str, location: str) -> TableFolder:
    """Opens ``location`` with ``storage_options`` of the cluster; StorageError: it is on no such store."""
    if location.startswith("file:"):
        return MountedFolder(location)
    if is_hdfs(location):
        fs = tables.without_tables.at(location).fs
        assert isinstance(fs, WebHdfsFileSystem)
        return HdfsFolder(fs, location)
    if is_object_store(location):
        return ObjectFolder(tables.without_tables.at(canonical_url(location)), location)
    raise StorageError(
        f"table {name} lies at {location}, and partitions are written, kept and evicted on file://, on HDFS and on "
        "object stores only"
    )
