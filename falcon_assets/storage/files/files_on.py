"""Chooses the access to the files of a file system: the one place where that is decided."""

from __future__ import annotations

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from falcon_assets.storage.files.cloud_files import AzureFiles, GoogleFiles
from falcon_assets.storage.files.file_access import FileAccess
from falcon_assets.storage.files.hdfs_files import HdfsFiles
from falcon_assets.storage.files.local_files import LocalFiles
from falcon_assets.storage.files.object_files import ObjectFiles, holds_objects
from falcon_assets.storage.files.remote_files import RemoteFiles
from falcon_assets.storage.files.s3_files import S3Files
from falcon_assets.storage.files.web_hdfs import WebHdfsFileSystem


def files_on(fs: AbstractFileSystem) -> FileAccess:
    if isinstance(fs, LocalFileSystem):
        return LocalFiles(fs)
    if isinstance(fs, WebHdfsFileSystem):
        return HdfsFiles(fs)
    if not holds_objects(fs.protocol):
        return RemoteFiles(fs)
    kinds = ((S3Files, "s3"), (AzureFiles, "abfs"), (GoogleFiles, "gs"))
    return next((kind for kind, scheme in kinds if scheme in fs.protocol), ObjectFiles)(fs)
