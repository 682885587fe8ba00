"""A real S3 server of its own process, on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fsspec.asyn import sync_wrapper

from tests.waiting import wait_until

KEY, SECRET = "AKIAF4LC0NTEST", "s3cr3t/of+the/lake"
"""Credentials that must be seen nowhere."""
ENVIRON = {"LAKE_KEY": KEY, "LAKE_SECRET": SECRET}


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """The URL of a server that starts empty."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "s3.log").open("wb") as log:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:

        def listens() -> bool:
            assert server.poll() is None, (folder / "s3.log").read_text()
            with socket.socket() as asking:
                return asking.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, what="the S3 server")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def lake(url: str, name: str = "lake", bucket: str = "lake", execute: str = "local[2]") -> dict[str, Any]:
    """What :func:`tests.builders.make_cluster` needs for a cluster on that server."""
    return {
        "name": name,
        "interfaces": {"write": {"endpoint": f"s3://{bucket}/data"}, "execute": {"endpoint": execute}},
        "storage_options": {
            "key": {"env": "LAKE_KEY"},
            "secret": {"env": "LAKE_SECRET"},
            "client_kwargs": {"endpoint_url": url},
        },
    }


def tell_requests(fs: Any, tell: Callable[[str], object]) -> None:
    """From now on ``tell`` is told the name of each request of a driver, just before it is made."""
    call = fs._call_s3

    async def told(method: str, *args: Any, **kwargs: Any) -> Any:
        tell(method)
        return await call(method, *args, **kwargs)

    fs._call_s3 = told
    fs.call_s3 = sync_wrapper(told, obj=fs)
