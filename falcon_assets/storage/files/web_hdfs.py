"""HDFS for fsspec, by the HTTP that every namenode speaks: nothing of Hadoop has to be installed here.

fsspec's own driver waits without end, does not notice that a rename was refused, and takes a namenode that does not
answer for missing files.
"""

from __future__ import annotations

import errno
import io
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from fsspec.implementations.webhdfs import WebHDFS

PATIENCE = (5.0, 30.0)
"""Seconds for a node to be reached, and to answer: one that collects its garbage is silent for a while."""
_WRITING_PATIENCE = (5.0, 150.0)
"""Of a datanode that writes: it needs a minute to give up another one that should have a copy and is silent."""
_TRIES = 2
_DATANODES = 3
"""How many are tried, of which HDFS usually has a copy on each."""
_ERRNOS = {
    "FileNotFoundException": errno.ENOENT,
    "FileAlreadyExistsException": errno.EEXIST,
    "AlreadyBeingCreatedException": errno.EEXIST,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "AccessControlException": errno.EACCES,
    "SecurityException": errno.EACCES,
    "AuthenticationException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "NSQuotaExceededException": errno.EDQUOT,
    "DSQuotaExceededException": errno.EDQUOT,
    "InvalidPathException": errno.EINVAL,
    "IllegalArgumentException": errno.EINVAL,
    "PathComponentTooLongException": errno.ENAMETOOLONG,
}
_ELSEWHERE = ("StandbyException", "RetriableException", "ObserverRetryOnActiveException")
"""Answers of a namenode that is not the one to ask, or not yet."""
_BAD = 400
_NO_DATANODE = ("could only be written to 0 of the", "Failed to find datanode")
_LOGICAL = (
    ": no machine has that name; if it stands for several namenodes, say their addresses in storage_options: "
    'webhdfs: "http://one:9870,http://other:9870"'
)
_KERBEROS = (
    "the namenode wants Kerberos: install requests-kerberos, declare `kerberos: true` in storage_options, and have a "
    "ticket (kinit); Spark needs its own, by spark.kerberos.* properties"
)
_SAFE_MODE = (
    "the namenode is in safe mode, in which nothing can be changed: it leaves that by itself after a start, "
    "or by hdfs dfsadmin -safemode leave"
)


class WebHdfsFileSystem(WebHDFS):  # type: ignore[misc]  # which has no types
    """The files of an HDFS; failures are ``OSError``, with the number that a local file system gives.

    ``addresses`` are those of namenodes (``http://HOST:PORT``), separated by commas: the active one counts. ``root``
    begins the URLs of files for Hadoop (``hdfs://HOST:PORT``).
    """

    protocol = ("hdfs", "webhdfs", "swebhdfs")

    def __init__(self, addresses: str, root: str, **options: Any) -> None:
        if self._cached:
            return
        super().__init__("", **options)
        self._addresses = [one.strip().rstrip("/") for one in addresses.split(",")]
        self._root = root

    def unstrip_protocol(self, name: str) -> str:
        return f"{self._root}{name}"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.rstrip("/") or "/"

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        status = self._call("GETFILESTATUS", path=path).json()["FileStatus"]
        return _entry(status, path.rstrip("/") or "/")

    def ls(self, path: str, detail: bool = False, **_: Any) -> list[Any]:
        above = path.rstrip("/")
        listed = self._call("LISTSTATUS", path=path).json()["FileStatuses"]["FileStatus"]
        # A file is listed by itself, without a name.
        named = ((one, f"{above}/{one['pathSuffix']}" if one["pathSuffix"] else above) for one in listed)
        return [_entry(one, name) if detail else name for one, name in named]

    def find(self, path: str, maxdepth: None = None, withdirs: bool = False, detail: bool = False, **_: Any) -> Any:
        """Returns files below, and folders on demand; none if nothing is there. Raises for a folder it cannot list."""
        found: dict[str, dict[str, Any]] = {}
        folders = [path]
        while folders:
            try:
                entries = self.ls(folders.pop(), detail=True)
            except FileNotFoundError:
                continue
            for entry in entries:
                is_folder = entry["type"] == "directory"
                if is_folder:
                    folders.append(entry["name"])
                if withdirs or not is_folder:
                    found[entry["name"]] = entry
        names = sorted(found)
        return {name: found[name] for name in names} if detail else names

    def exists(self, path: str, **_: Any) -> bool:
        return self._type(path) is not None

    def lexists(self, path: str, **_: Any) -> bool:
        return self.exists(path)

    def isdir(self, path: str) -> bool:
        return self._type(path) == "directory"

    def isfile(self, path: str) -> bool:
        return self._type(path) == "file"

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        self._call("MKDIRS", "put", path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        if not exist_ok and self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.mkdir(path)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Renames in one step to a free name: Hadoop's other rename would move it *into* a folder of that name."""
        self._call("RENAME", "put", path1, destination=self._strip_protocol(path2), renameoptions="NONE")

    def rm(self, path: str, recursive: bool = False, **_: Any) -> None:
        answer = self._call("DELETE", "delete", path, recursive=str(recursive).lower())
        if not answer.json()["boolean"]:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def rm_file(self, path: str, **_: Any) -> None:
        self.rm(path)

    def rmdir(self, path: str) -> None:
        self.rm(path)

    def chmod(self, path: str, mod: int) -> None:
        self._call("SETPERMISSION", "put", path, permission=f"{mod:o}")

    def chown(self, path: str, owner: str | None = None, group: str | None = None) -> None:
        """Only Hadoop's superuser may give files to others; who owns a file may give it to a group that he is in."""
        asked = {"owner": owner, "group": group}
        self._call("SETOWNER", "put", path, **{name: value for name, value in asked.items() if value})

    def utime(self, path: str, modified: int) -> None:
        """Sets the modification time, in milliseconds since 1970."""
        self._call("SETTIMES", "put", path, modificationtime=modified)

    def room(self, path: str) -> tuple[int, int] | None:
        """Returns used and free bytes, of all copies; None: the namenode does not tell.

        What leaves least counts: the quota of a folder, of one above it, or the file system itself.
        """
        steps, found = path.strip("/").split("/"), list[tuple[int, int]]()
        for length in range(len(steps), 0, -1):
            told = self._told("GETQUOTAUSAGE", "/" + "/".join(steps[:length]), "QuotaUsage")
            if told and told["spaceQuota"] >= 0:
                found.append((told["spaceConsumed"], max(told["spaceQuota"] - told["spaceConsumed"], 0)))
        if told := self._told("GETSTATUS", path, "FsStatus"):
            found.append((told["used"], told["remaining"]))
        return min(found, key=lambda one: one[1], default=None)

    def _told(self, op: str, path: str, key: str) -> dict[str, int] | None:
        """Returns what a namenode says that may not know the question (before Hadoop 3), or not answer this user."""
        try:
            told: dict[str, int] = self._call(op, path=path).json()[key]
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT, errno.EACCES):
                return None
            raise
        return told

    def ukey(self, path: str) -> str:
        """Returns the checksum that HDFS keeps of a file, with all that it depends on beside the content."""
        said = self._data_call("GETFILECHECKSUM", "get", path).json()["FileChecksum"]
        return f"{said['algorithm']}:{said['bytes']}"

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        part: dict[str, Any] = {} if start is None else {"offset": start}
        if end is not None:
            part["length"] = max(end - (start or 0), 0)
        if part.get("length") == 0:
            return b""
        return bytes(self._data_call("OPEN", "get", path, **part).content)

    def pipe_file(self, path: str, value: bytes | Iterable[bytes], mode: str = "overwrite", **_: Any) -> None:
        """Writes a file, with the folders above it; a content in blocks is never kept whole."""
        overwrite = str(mode == "overwrite").lower()
        self._data_call("CREATE", "put", path, value, overwrite=overwrite)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self.pipe_file(path2, self.streamed(path1))

    def streamed(self, path: str, block: int = 1 << 20) -> Iterator[bytes]:
        answer = self._data_call("OPEN", "get", path, stream=True)
        try:
            yield from answer.iter_content(block)
        except requests.RequestException as error:
            raise _silent(answer.url, error, "datanode") from None
        finally:
            answer.close()

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode == "rb":
            return io.BytesIO(self.cat_file(path))
        if mode == "wb":
            return _Written(self, path)
        raise NotImplementedError(mode)

    def _type(self, path: str) -> str | None:
        try:
            return str(self.info(path)["type"])
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _data_call(
        self, op: str, method: str, path: str, data: Any = None, stream: bool = False, **asked: Any
    ) -> requests.Response:
        silent: OSError | None = None
        without: set[str] = set()
        for _ in range(_DATANODES):
            try:
                redirect = self._call(op, method, path, **asked, **_excluding(without))
            except OSError:
                if silent:
                    raise silent from None  # there is no other datanode
                raise
            location = redirect.headers.get("Location")
            if location is None:
                if data is None:
                    return redirect
                raise OSError(errno.EIO, "the namenode names no datanode to write to", path)
            headers = {"Content-Type": "application/octet-stream"}
            timeout = PATIENCE if data is None else _WRITING_PATIENCE
            try:
                answer: requests.Response = self.session.request(
                    method, self._apply_proxy(location), data=data, headers=headers, timeout=timeout, stream=stream
                )
            except requests.RequestException as error:
                silent = _silent(location, error, "datanode")
                if not _is_repeatable(method, error):
                    raise silent from None
                without |= _addresses_of(location)
                continue
            _require_done(answer, path)
            return answer
        assert silent is not None
        raise silent

    def _call(self, op: str, method: str = "get", path: str = "/", **asked: Any) -> requests.Response:
        try:
            place = "/webhdfs/v1" + quote(self._strip_protocol(path), safe="/")
        except UnicodeEncodeError:
            raise OSError(errno.EILSEQ, "HDFS takes names of UTF-8 only", path) from None
        silent: OSError | None = None
        for attempt in range(_TRIES):
            for address in list(self._addresses):
                try:
                    answer: requests.Response = self.session.request(
                        method,
                        self._apply_proxy(address) + place,
                        params={**asked, **self.pars, "op": op},
                        allow_redirects=False,
                        timeout=PATIENCE,
                    )
                except requests.RequestException as error:
                    silent = _silent(address, error, "namenode")
                    if not _is_repeatable(method, error):
                        raise silent from None
                    continue
                name, _ = _exception(answer)
                if name in _ELSEWHERE and (attempt + 1 < _TRIES or address != self._addresses[-1]):
                    continue
                _require_done(answer, path)
                self._addresses.sort(key=address.__ne__)  # the next one is asked there first
                return answer
        assert silent is not None
        raise silent


class _Written(io.BytesIO):
    def __init__(self, fs: WebHdfsFileSystem, path: str) -> None:
        super().__init__()
        self._fs, self._path = fs, path

    def close(self) -> None:
        if not self.closed:
            self._fs.pipe_file(self._path, self.getvalue())
        super().close()

    def __exit__(self, kind: Any, *error: Any) -> None:
        if kind is None:
            self.close()
        else:
            super().close()


def _entry(status: Mapping[str, Any], name: str) -> dict[str, Any]:
    kinds = {"DIRECTORY": "directory", "FILE": "file"}
    return {
        **status,
        "name": name,
        "type": kinds.get(status["type"], "other"),
        "size": status["length"],
        "mode": int(status["permission"], 8),
        "ino": status.get("fileId"),  # another one when it is written anew, also within one millisecond
        "generation": f"{status['modificationTime']}-{status.get('fileId')}",
    }


def _excluding(without: set[str]) -> dict[str, str]:
    """What the namenode must be told to name none of these datanodes, which it knows by their IP addresses."""
    return {"excludedatanodes": ",".join(sorted(without))} if without else {}


def _addresses_of(location: str) -> set[str]:
    host = str(urlsplit(location).hostname)
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except OSError:
        return {host}


def _is_repeatable(method: str, error: requests.RequestException) -> bool:
    """Whether what was asked has certainly not been done, or may be done twice."""
    return method == "get" or isinstance(error, requests.ConnectTimeout) or _is_refused(error)


def _is_refused(error: requests.RequestException) -> bool:
    return (
        isinstance(error, requests.ConnectionError)
        and not isinstance(error, requests.ReadTimeout)
        and ("NewConnectionError" in repr(error) or "NameResolutionError" in repr(error))
    )


def _silent(address: str, error: requests.RequestException, what: str) -> OSError:
    where = "/".join(address.split("/")[:3])
    how = "does not answer" if isinstance(error, requests.Timeout) else "cannot be reached"
    number = errno.ETIMEDOUT if isinstance(error, requests.Timeout) else errno.ECONNREFUSED
    hint = _LOGICAL if "NameResolutionError" in repr(error) and what == "namenode" else ""
    return OSError(number, f"the {what} at {where} {how}{hint}")


def _exception(answer: requests.Response) -> tuple[str, str]:
    """Returns name and message of the exception in a node's answer; empty if it has none."""
    if answer.status_code < _BAD:
        return "", ""
    try:
        said = answer.json()["RemoteException"]
        return str(said["exception"]), str(said["message"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        return "", ""


def _require_done(answer: requests.Response, path: str) -> None:
    if answer.status_code < _BAD:
        return
    name, message = _exception(answer)
    if name in _ELSEWHERE:
        raise OSError(errno.EIO, f"no namenode that was asked is active ({name})")
    if "in safe mode" in message or name == "SafeModeException":
        raise OSError(errno.EBUSY, _SAFE_MODE, path)
    if any(one in message for one in _NO_DATANODE):
        raise OSError(errno.EIO, "there is no datanode that takes the file: they are full, or do not answer", path)
    if "negotiate" in answer.headers.get("WWW-Authenticate", "").lower():
        raise OSError(errno.EPROTO, _KERBEROS, path)
    number = _ERRNOS.get(name)
    if number is not None:
        raise OSError(number, message, path)
    # What else a node says is not quoted: nobody knows what is in it.
    denied = answer.status_code == requests.codes.unauthorized
    raise OSError(errno.EACCES if denied else errno.EIO, name or f"HTTP status {answer.status_code}", path)
