"""A webserver that cannot be asked is said in a sentence; one that can: see ``test_dagster_commands``."""

from __future__ import annotations

import socket
import threading

import pytest

from falcon_assets.operations.reload import reload_code_locations
from tests.processes import free_port


def test_nobody_is_asked_where_there_is_none() -> None:
    assert reload_code_locations(None).startswith("Dagster was not asked to reload the code location")


def test_nobody_listens() -> None:
    said = reload_code_locations(f"http://127.0.0.1:{free_port()}")
    assert (
        "could not be asked to reload the definitions ([Errno 111] Connection refused): reload the code location"
        in said
    )


ANSWERS = {
    "another protocol": b"220 mail ready\r\n",
    "no JSON": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "a list": b"HTTP/1.0 200 OK\r\n\r\n[]",
    "an error": b'HTTP/1.0 200 OK\r\n\r\n{"errors": [{"message": "no such field"}]}',
    "nothing in it": b'HTTP/1.0 200 OK\r\n\r\n{"data": {"workspaceOrError": null}}',
    "not found": b"HTTP/1.0 404 Not Found\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_something_else_answers(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection = server.accept()[0]
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        said = reload_code_locations(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert "could not be asked to reload the definitions (" in said
    assert len(said.splitlines()) == 1


def test_a_front_with_logins_gets_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    monkeypatch.setenv("FALCON_TOKEN", "hunter2")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection = server.accept()[0]
            with connection:
                asked.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.0 401 Unauthorized\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        said = reload_code_locations(f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert b"\r\nAuthorization: Bearer hunter2\r\n" in asked[0]
    assert "Unauthorized" in said
    assert "hunter2" not in said
