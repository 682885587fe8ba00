"""A webserver that cannot be asked is said in a sentence; one that can: see ``test_dagster_commands``."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from falcon_assets.operations.reload import reload_code_locations
from falcon_assets.operations.server_tokens import keep_token
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


@pytest.mark.parametrize("is_known", [True, False])
def test_only_a_front_that_one_has_logged_in_to_gets_a_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_known: bool
) -> None:
    """Whoever listens at the usual port does not get that of another server."""
    asked: list[bytes] = []
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("FALCON_TOKEN", "of-another-server")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        keep_token(url if is_known else "http://127.0.0.1:1", "hunter2")

        def serve() -> None:
            connection = server.accept()[0]
            with connection:
                asked.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.0 401 Unauthorized\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        said = reload_code_locations(url)
        thread.join()
    assert (b"\r\nAuthorization: Bearer hunter2\r\n" in asked[0]) is is_known
    assert b"of-another-server" not in asked[0]
    assert "Unauthorized" in said
    assert "hunter2" not in said


def test_a_token_is_not_sent_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[bytes] = []
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as front, socket.create_server(("127.0.0.1", 0)) as other:
        url, elsewhere = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in (front, other))
        keep_token(url, "hunter2")
        moved = f"HTTP/1.0 302 Found\r\nLocation: {elsewhere}/\r\n\r\n".encode()

        def serve(server: socket.socket, answer: bytes) -> None:
            connection = server.accept()[0]
            with connection:
                asked.append(connection.recv(65536))
                connection.sendall(answer)

        answers = ((front, moved), (other, b"HTTP/1.0 404 Not Found\r\n\r\n"))
        threads = [threading.Thread(target=serve, args=one) for one in answers]
        for one in threads:
            one.start()
        reload_code_locations(url)
        for one in threads:
            one.join()
    assert b"Bearer hunter2" in asked[0]
    assert b"hunter2" not in asked[1]
