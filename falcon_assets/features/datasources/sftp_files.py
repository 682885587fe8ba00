"""A file system of fsspec on an SSH server whose host key is known; nothing of the user's own SSH settings counts."""

from __future__ import annotations

from typing import Any

from sshfs import SSHFileSystem

_LOCAL = "127.0.0.1"


class PinnedSftp(SSHFileSystem):  # type: ignore[misc]  # it has no types
    """Can be pickled: workers of Spark open connections of their own."""

    protocol = ("sftp",)

    def __init__(
        self,
        host: str,
        *,
        port: int,
        host_key: str,
        username: str | None = None,
        password: str | None = None,
        private_key: str | None = None,
        **options: Any,
    ) -> None:
        """``host_key`` is a line of a public key; ``private_key`` the text of a private one."""
        super().__init__(
            host,
            port=port,
            known_hosts=f"[{host}]:{port} {host_key}\n{host} {host_key}\n".encode(),
            username=username or (),
            password=password,
            client_keys=[private_key.encode()] if private_key else None,
            agent_path=None,
            config=None,
            **options,
        )

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        """The driver reads whole files, whatever part is asked for."""
        async with self._pool.get() as channel, channel.open(self._strip_protocol(path), "rb") as file:
            first = start or 0
            found: bytes = await file.read(-1 if end is None else end - first, first)
            return found
