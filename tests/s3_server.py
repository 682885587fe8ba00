"""A real S3 server of its own process, on loopback."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fsspec.asyn import sync_wrapper
from s3fs import S3FileSystem

from tests.processes import free_port, listens
from tests.waiting import wait_until

KEY, SECRET = "AKIAF4LC0NTEST", "s3cr3t/of+the/lake"
"""Credentials that must be seen nowhere."""
ENVIRON = {"LAKE_KEY": KEY, "LAKE_SECRET": SECRET}


@contextmanager
def s3_server(folder: Path, host: str = "127.0.0.1", before: Sequence[str] = ()) -> Iterator[str]:
    """The URL of a server that starts empty; ``before`` begins the command, for one on another machine."""
    port = free_port()
    with (folder / "s3.log").open("wb") as log:
        command = [*before, sys.executable, "-m", "moto.server", "-H", host, "-p", str(port)]
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:

        def answers() -> bool:
            assert server.poll() is None, (folder / "s3.log").read_text()
            return listens(port, host)

        wait_until(answers, what="the S3 server")
        yield f"http://{host}:{port}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="session")
def shared_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of one server for all tests, which each module begins empty."""
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture(scope="module")
def s3(shared_s3: str) -> str:
    """The URL of a server that is empty, for the tests of one module."""
    urllib.request.urlopen(f"{shared_s3}/moto-api/reset", b"").close()
    S3FileSystem.clear_instance_cache()  # each knows what another module had there
    return shared_s3


@pytest.fixture(scope="module")
def lake_url(s3: str) -> Iterator[str]:
    """The same with a bucket ``lake``; its credentials are in the environment."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in ENVIRON.items():
            environment.setenv(name, value)
        S3FileSystem(key=KEY, secret=SECRET, client_kwargs={"endpoint_url": s3}).mkdir("lake")
        yield s3


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
