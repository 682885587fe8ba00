"""Operations on all of a folder on HDFS, as for folders of this machine."""

from __future__ import annotations

from falcon_assets.storage.files.web_hdfs import WebHdfsFileSystem
from falcon_assets.storage.instances.data_files import is_side_file


def apply_permission_on_hdfs(fs: WebHdfsFileSystem, path: str, permission: str | None) -> None:
    if permission is None or permission == "*":
        return
    mode = int(permission, 8)
    found = {path: {"type": str(fs.info(path)["type"])}}
    if found[path]["type"] == "directory":
        found |= fs.find(path, withdirs=True, detail=True)
    for name, entry in found.items():
        fs.chmod(name, mode | 0o700 if entry["type"] == "directory" else mode & 0o666 | 0o600)


def remove_side_files_on_hdfs(fs: WebHdfsFileSystem, folder: str, keep: str | None) -> None:
    folders = [folder]
    while folders:
        for entry in fs.ls(folders.pop(), detail=True):
            path, name = entry["name"], entry["name"].rpartition("/")[2]
            if is_side_file(name) and path != f"{folder}/{keep}":
                fs.rm(path, recursive=True)
            elif entry["type"] == "directory":
                folders.append(path)
