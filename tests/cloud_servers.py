"""Real servers of the protocols of Google's and Azure's object stores, each of its own process, on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes import free_port, listens
from tests.waiting import wait_until

_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""What the emulator of Azure Storage knows, everywhere."""


@contextmanager
def google_storage(folder: Path) -> Iterator[dict[str, Any]]:
    """The storage options for a server that starts empty."""
    port = free_port()
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host", "127.0.0.1", "--port", str(port)]
    with _served([*command, "--in-memory"], port, folder):
        yield {"token": "anon", "endpoint_url": f"http://127.0.0.1:{port}"}


@contextmanager
def azure_storage(folder: Path) -> Iterator[dict[str, Any]]:
    """The same for Azure's."""
    port, azurite = free_port(), shutil.which("azurite-blob")
    assert azurite, "install azurite: npm install --global azurite"
    command = [azurite, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--silent"]
    with _served([*command, "--skipApiVersionCheck", "--disableTelemetry"], port, folder):
        account = f"AccountName={_ACCOUNT};AccountKey={_KEY};BlobEndpoint=http://127.0.0.1:{port}/{_ACCOUNT};"
        yield {"connection_string": f"DefaultEndpointsProtocol=http;{account}"}


@pytest.fixture(scope="session")
def gs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Those of one server for all tests."""
    with google_storage(tmp_path_factory.mktemp("gs")) as options, pytest.MonkeyPatch.context() as environment:
        # gcsfs would ask another service, which the server does not have, what kind of bucket it is.
        environment.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        yield options


@pytest.fixture(scope="session")
def abfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The same for Azure's."""
    with azure_storage(tmp_path_factory.mktemp("abfs")) as options:
        yield options


@contextmanager
def _served(command: list[str], port: int, folder: Path) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=os.environ, cwd=folder)
    try:

        def is_ready() -> bool:
            assert server.poll() is None, (folder / "log").read_text()
            return listens(port)

        wait_until(is_ready, what=command[0])
        yield
    finally:
        server.kill()
        server.wait()
