"""What attackers send to a front, byte by byte, on real sockets; whoever they say they are."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websockets
from dagster_graphql.schema import create_schema
from graphql import parse, specified_rules, validate
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from falcon_assets.surface.front import hardening, protocol
from falcon_assets.surface.front.hardening import LOOPBACK, Hardening, OnlyKnown
from falcon_assets.surface.front.query_limits import SizeRule
from tests.surface.front.conftest import ByHeader, serving

JSON = {"Content-Type": "application/json"}


async def told(request: Request) -> JSONResponse:
    certificates = request.scope.get("extensions", {}).get("tls", {}).get("client_cert_chain")
    return JSONResponse({"bytes": len(await request.body()), "certificates": certificates})


async def socket_of(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


@pytest.fixture(scope="module")
def app() -> Starlette:
    methods = ["GET", "POST", "DELETE"]
    return Starlette(
        routes=[
            Route("/graphql", told, methods=methods),
            Route("/form", told, methods=methods),
            Route("/healthz", told),
            WebSocketRoute("/graphql", socket_of),
        ],
        middleware=[
            Middleware(Hardening, hosts=LOOPBACK),
            Middleware(ByHeader),
            Middleware(OnlyKnown, is_open={"/healthz"}.__contains__),
        ],
    )


@pytest.fixture(scope="module")
def port(app: Starlette) -> Iterator[int]:
    with serving(app) as port:
        yield port


def asked(
    port: int, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> tuple[int, str]:
    known = {"Host": f"127.0.0.1:{port}", "x-who": "ann ADMIN", "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"{name}: {value}" for name, value in (known | (headers or {})).items() if value]
    return raw(port, f"{method} {path} HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n", body)


def raw(port: int, head: str, *bodies: bytes) -> tuple[int, str]:
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(head.encode())
        try:
            for body in bodies:
                connection.sendall(body)
        except OSError:
            pass  # it is refused before all of it has come
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
    head, _, text = answer.decode().partition("\r\n\r\n")
    return (int(head.split()[1]) if head else 0), text


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        pytest.param("POST", "/graphql", JSON, 200, id="a program"),
        pytest.param("GET", "/graphql?query=mutation", {}, 415, id="a mutation by GET"),
        pytest.param("GET", "/graphql", {"Accept": "text/html"}, 200, id="the page of GraphiQL"),
        pytest.param("POST", "/graphql?query=mutation", {"Content-Type": "text/plain"}, 415, id="as plain text"),
        pytest.param("POST", "/graphql", {"Content-Type": "application/graphql"}, 415, id="as application/graphql"),
        pytest.param("POST", "/graphql", {**JSON, "Origin": "http://evil.example"}, 403, id="a page of others"),
        pytest.param("POST", "/graphql", {**JSON, "Origin": "null"}, 403, id="a page from nowhere"),
        pytest.param("POST", "/graphql", {**JSON, "Sec-Fetch-Site": "cross-site"}, 403, id="said by the browser"),
        pytest.param("POST", "/graphql", {**JSON, "Sec-Fetch-Site": "same-site"}, 403, id="a neighbour"),
        pytest.param("DELETE", "/form", {"Origin": "http://evil.example"}, 403, id="another method"),
        pytest.param(
            "POST", "/form", {"Content-Type": "application/x-www-form-urlencoded"}, 415, id="a form of nobody"
        ),
        pytest.param("POST", "/graphql", {**JSON, "Host": "evil.example"}, 421, id="a name that leads here"),
        pytest.param("GET", "/form", {"Host": "evil.example"}, 421, id="a read by such a name"),
        pytest.param("GET", "/form", {"x-who": ""}, 401, id="nobody"),
        pytest.param("GET", "/healthz", {"x-who": ""}, 200, id="nobody asks for health"),
    ],
)
def test_requests(port: int, method: str, path: str, headers: dict[str, str], status: int) -> None:
    body = b"{}" if method == "POST" else b""
    assert asked(port, method, path, headers, body)[0] == status


def test_a_form_of_the_same_origin(port: int) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{port}"}
    assert asked(port, "POST", "/form", headers, b"a=b")[0] == 200


@pytest.mark.parametrize("who", ["", "ann ADMIN"])
@pytest.mark.parametrize("origin", ["http://evil.example", None])
def test_websockets(port: int, who: str, origin: str | None) -> None:
    async def talk() -> str:
        headers = {"x-who": who} if who else {}
        async with websockets.connect(
            f"ws://127.0.0.1:{port}/graphql", origin=origin, additional_headers=headers
        ) as connection:
            await connection.send("hello")
            return str(await connection.recv())

    if who and origin is None:
        assert asyncio.run(talk()) == "hello"
    else:
        with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
            asyncio.run(talk())


def test_bodies_are_counted_whatever_they_declare(port: int) -> None:
    head = f"POST /form HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nx-who: ann ADMIN\r\nContent-Type: application/json\r\n"
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    most = hardening.MOST_BYTES // 0x100000
    fits = raw(port, head + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n", *[chunk] * most, b"0\r\n\r\n")
    assert fits[0] == 200
    assert json.loads(fits[1])["bytes"] == hardening.MOST_BYTES
    status, text = raw(port, head + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n", *[chunk] * (most + 2))
    assert (status, "bytes" in text) == (413, True)


def test_bodies_that_do_not_come(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardening, "BODY_SECONDS", 0.5)
    head = f"POST /form HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nx-who: ann ADMIN\r\nContent-Type: application/json\r\n"
    assert raw(port, head + "Connection: close\r\nContent-Length: 9\r\n\r\n", b"half")[0] == 408


@pytest.mark.parametrize("begun", ["", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "], ids=["none", "half"])
def test_headers_that_do_not_come(app: Starlette, monkeypatch: pytest.MonkeyPatch, begun: str) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.5)
    with serving(app) as port:
        whole = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
        assert raw(port, begun) == (0, "")
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(whole.encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            connection.sendall(begun.encode() or b"G")
            assert connection.recv(65536) == b"", "the second request of a connection has its time, too"


@pytest.mark.parametrize("end", [b"\r\n", b""], ids=["whole", "endless"])
@pytest.mark.parametrize("at_once", [True, False])
def test_headers_that_are_too_long(port: int, at_once: bool, end: bytes) -> None:
    """Also where a busy server reads all of them in one piece."""
    pieces = [b"X-More: " + b"x" * 8_000 + b"\r\n"] * (12 if end else 60) + [end]
    sent = [b"".join(pieces)] if at_once else pieces
    assert raw(port, f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n", *sent)[0] in (0, 400)


def test_long_headers_and_a_body_that_comes_with_them(port: int) -> None:
    head = f"POST /form HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nx-who: ann ADMIN\r\nContent-Type: application/json\r\n"
    more = "".join(f"X-More: {'x' * 8_000}\r\n" for _ in range(7))
    body = b"x" * 200_000
    status, text = raw(port, f"{head}{more}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n" + body.decode())
    assert (status, json.loads(text)["bytes"]) == (200, len(body))


DEEP = "{a" * 30 + "}" * 30


def bomb(levels: int) -> str:
    """A fragment that doubles at each level."""
    parts = [f"fragment F{n} on Query {{ ...F{n + 1} ...F{n + 1} }}" for n in range(levels)]
    return "query { ...F0 } " + " ".join(parts) + f" fragment F{levels} on Query {{ version }}"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{ version }", None),
        ("query Deep " + DEEP, "more than 15 levels"),
        ("{ " + " ".join(f"a{n}: version" for n in range(100)) + " }", "more than 60 aliases"),
        (bomb(40), "more than 20000 fields"),
        ("query { ...A } fragment A on Query { ...B } fragment B on Query { ...A }", "Cannot spread fragment"),
        ("mutation { " + "setNuxSeen " * 6 + "}", "more than 5 mutations"),
    ],
    ids=["small", "deep", "aliases", "bomb", "cycle", "mutations"],
)
def test_documents(document: str, problem: str | None) -> None:
    schema = create_schema().graphql_schema
    found = validate(schema, parse(document), [SizeRule, *specified_rules])
    assert bool(found) is (problem is not None)
    assert problem is None or any(problem in one.message for one in found)


def test_tls_and_who_the_client_is(app: Starlette, tmp_path: Path) -> None:
    certificate, key = own_certificate(tmp_path)
    options: dict[str, Any] = {
        "ssl_certfile": str(certificate),
        "ssl_keyfile": str(key),
        "ssl_ca_certs": str(certificate),
        "ssl_cert_reqs": ssl.CERT_OPTIONAL,
    }
    with serving(app, **options) as port:
        for shown in (False, True):
            context = ssl.create_default_context(cafile=str(certificate))
            if shown:
                context.load_cert_chain(certificate, key)
            with (
                socket.create_connection(("127.0.0.1", port)) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
            ):
                secured.sendall(
                    f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
                )
                answer = b"".join(iter(lambda: secured.recv(65536), b""))
            head, _, text = answer.decode().partition("\r\n\r\n")
            assert "strict-transport-security" in head.lower()
            assert json.loads(text)["certificates"] == ([certificate.read_text()] if shown else [])


def own_certificate(folder: Path) -> tuple[Path, Path]:
    """Signed by itself, for 127.0.0.1."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "front")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "front.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "front.key").write_bytes(private)
    return folder / "front.pem", folder / "front.key"
