"""The type ``sftp``: files on an SSH server, whose host key is pinned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from fsspec import AbstractFileSystem

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import Dataset, DatasourceType

_PORT = 22
_SECONDS = 10
_HOST_KEY = re.compile(r"(ssh-[\w-]+|ecdsa-sha2-[\w-]+|sk-[\w@.-]+) [A-Za-z0-9+/=]+( .*)?")
_KNOWN = "host_key"


class Sftp(DatasourceType):
    """Files on an SSH server."""

    name = "sftp"
    endpoint = "sftp://host:22/folder"
    package = "falcon-assets[sftp]"
    module = "asyncssh"
    driver = (_KNOWN,)
    reads: ClassVar = ("path",)

    def endpoint_problem(self, endpoint: str) -> str | None:
        """A host, and an absolute folder; the server's root, where there is none."""
        return None if endpoint.startswith("sftp://") and _host(endpoint) else f"write {self.endpoint}"

    def require_reachable(self, access: Access) -> None:
        fs, root = self.file_system(access)
        with explained_sftp(access):
            if not fs.isdir(root or "/"):
                raise DatasourceError(f"datasource {access.name!r}: there is no folder {root} on its server")

    def datasets(self, access: Access, table: str | None = None) -> Iterator[Dataset]:
        fs, root = self.file_system(access)
        with explained_sftp(access):
            folder = f"{root}/{table.strip('/')}" if table else root or "/"
            if not fs.exists(folder):
                raise DatasourceError(f"datasource {access.name!r}: there is no {folder} on its server")
            for entry in sorted(fs.ls(folder, detail=True), key=lambda one: str(one["name"])):
                end = "/" if entry["type"] == "directory" else ""
                yield Dataset(f"{str(entry['name']).rstrip('/').removeprefix(root).lstrip('/')}{end}")

    def file_system(self, access: Access) -> tuple[AbstractFileSystem, str]:
        try:
            from falcon_assets.features.datasources.sftp_files import PinnedSftp  # noqa: PLC0415 - of an extra
        except ImportError:
            raise DatasourceError(f"datasource {access.name!r} needs a package: pip install '{self.package}'") from None
        host_key = access.driver.get(_KNOWN, "")
        if not _HOST_KEY.fullmatch(host_key):
            where = f"ssh-keyscan -p {_port(access.endpoint)} {_host(access.endpoint)}"
            raise DatasourceError(
                f"datasource {access.name!r}: driver.{_KNOWN} must have the server's public key, such as "
                f"'ssh-ed25519 AAAA...'; {where} prints it, its administrator says whether it is right"
            )
        options: dict[str, Any] = {"username": access.user, "host_key": host_key, "port": _port(access.endpoint)}
        if access.password is not None:
            options["password"] = access.password
        if access.private_key is not None:
            options["private_key"] = access.private_key
        with explained_sftp(access):
            fs = PinnedSftp(_host(access.endpoint), timeout=_SECONDS, skip_instance_cache=True, **options)
        return fs, unquote(urlsplit(access.endpoint).path).rstrip("/")


def _host(endpoint: str) -> str:
    try:
        return urlsplit(endpoint).hostname or ""
    except ValueError:
        return ""


def _port(endpoint: str) -> int:
    return urlsplit(endpoint).port or _PORT


@contextmanager
def explained_sftp(access: Access) -> Iterator[None]:
    """Raises DatasourceError in place of what the driver raises."""
    try:
        yield
    except DatasourceError:
        raise
    except PermissionError:
        raise DatasourceError(
            f"datasource {access.name!r}: the login of {access.user!r} was refused: look at its credential"
        ) from None
    except (ConnectionError, TimeoutError) as error:
        raise DatasourceError(
            f"datasource {access.name!r}: {_host(access.endpoint)}:{_port(access.endpoint)} does not answer "
            f"({type(error).__name__})"
        ) from None
    except Exception as error:
        if type(error).__name__ == "HostKeyNotVerifiable":
            raise DatasourceError(
                f"datasource {access.name!r}: {_host(access.endpoint)} has another host key than driver.{_KNOWN}: "
                "somebody else may answer there; ask its administrator before changing it"
            ) from None
        raise DatasourceError(f"datasource {access.name!r}: {type(error).__name__}: {error}") from None
