"""A real SFTP server on loopback, by asyncssh, whose root is a folder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh


@dataclass(frozen=True)
class SftpServer:
    """What a client needs; ``host_key`` and ``private_key`` are texts."""

    port: int
    root: Path
    host_key: str
    user: str
    password: str
    private_key: str

    @property
    def endpoint(self) -> str:
        return f"sftp://127.0.0.1:{self.port}"


async def _ended(server: asyncssh.SSHAcceptor) -> None:
    server.close()
    await server.wait_closed()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def sftp_server(root: Path, user: str = "partner", password: str = "s3cret-pass") -> Iterator[SftpServer]:
    host_key, own = asyncssh.generate_private_key("ssh-ed25519"), asyncssh.generate_private_key("ssh-ed25519")

    class Logins(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return True

        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, given: str) -> bool:
            return (username, given) == (user, password)

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
            return username == user and key == own.convert_to_public()

    async def serve() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=Logins,
            server_host_keys=[host_key],
            sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=str(root)),
        )

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="sftp-server", daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(serve(), loop).result(30)
    try:
        public = host_key.export_public_key().decode().strip()
        yield SftpServer(server.get_port(), root, public, user, password, own.export_private_key().decode())
    finally:
        asyncio.run_coroutine_threadsafe(_ended(server), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
