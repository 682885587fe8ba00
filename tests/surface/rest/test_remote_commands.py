"""``falcon --server``: what a server performs is shown as what is performed here."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from falcon_assets.errors import FalconError, QueryError, StorageError
from falcon_assets.features.triage import answers as triage_answers
from falcon_assets.settings import Settings, os_user
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.served import open_served
from tests.builders import cluster_yaml, feed_yaml, land_rows, process_yaml
from tests.surface.rest.servers import Client, serving

ENTITIES = (
    cluster_yaml("primary", colo="east")
    + feed_yaml("raw", tags={"owner": "etl"}, sla={"low": "hours(1)", "high": "hours(2)"})
    + feed_yaml("made")
)
READ = [
    "entity list",
    "entity list --filter kind=feed --sort -name --limit 1",
    "entity list --json",
    "entity show make",
    "entity show make --json",
    "entity status make",
    "entity summary",
    "entity dependency raw",
    "entity history make",
    "entity diff make",
    "entity lookup --path /raw/2013-01-01/02",
    "instance list",
    "instance list make --json",
    "instance list make --sort -instance --limit 2",
    "instance list raw --type feed",
    "instance status make --start 2013-01-01T02:00Z",
    "instance summary",
    "instance running",
    "instance search ma",
    "instance dependency make 2013-01-01T02:00Z",
    "instance params make 2013-01-01T02:00Z",
    "instance triage make 2013-01-01T02:00Z --json",
    "instance versions raw 2013-01-01T02:00Z",
    "explain make 2013-01-01T02:00Z",
    "sla alerts",
    "sla pending",
    "lineage search --json",
    "retention plan",
    "notification list",
    "quality show raw 2013-01-01T02:00Z",
    "template list",
    "template show ingest-tables",
    "flow list",
    "executor list",
    "feed watermark raw",
    "admin version",
    "schema feed",
    "admin root list",
]
REFUSED = [
    ("entity show none", 1),
    ("entity list --filter color=red", 2),
    ("instance status none", 1),
    ("instance list --sort color", 2),
    ("instance kill make", 2),
    ("entity schedule none", 1),
    ("instance kill make --start 2013-01-01T00:30Z", 1),
]


@pytest.fixture(scope="module")
def root(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Client]:
    write_entities({"all.yaml": ENTITIES + process_yaml("make", "raw", "made"), "a.sql": "SELECT 1"})
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_CLOCK", "2013-01-01T06:30Z")
        environment.setenv("FALCON_WEBSERVER_URL", "")
        environment.setenv("FALCON_SUPERUSERS", os_user())
        environment.setenv("FALCON_TOKEN", os_user())
        land_rows(settings.home / "data/primary/raw/2013-01-01/02", {"n": 1})
        assert call(["entity", "touch", "make"]).exit_code == 0  # its definition is recorded
        with open_served(seconds=30) as served, serving(served) as client:
            yield client


def call(words: list[str]) -> Result:
    return CliRunner().invoke(falcon, words)


def both(root: Client, words: list[str]) -> tuple[Result, Result]:
    return call(words), call(["--server", root.url, *words])


@pytest.mark.parametrize("command", READ)
def test_a_server_shows_the_same(root: Client, command: str) -> None:
    here, there = both(root, command.split())
    assert here.exception is None or isinstance(here.exception, SystemExit), here.exception
    assert there.exception is None or isinstance(there.exception, SystemExit), there.exception
    assert (there.output, there.exit_code) == (here.output, here.exit_code)


@pytest.mark.parametrize(("command", "code"), REFUSED)
def test_a_server_refuses_with_the_same_words(root: Client, command: str, code: int) -> None:
    found = []
    for one in both(root, command.split()):
        if isinstance(one.exception, FalconError):
            found.append((str(one.exception), 2 if isinstance(one.exception, QueryError) else 1))
        else:
            found.append((one.output, one.exit_code))
    assert found[0] == found[1]
    assert found[0][1] == code


def test_files_are_read_here_and_changes_made_there(root: Client, tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text(feed_yaml("new"))
    server = ["--server", root.url]
    planned = call([*server, "entity", "submit", str(tmp_path / "new.yaml"), "--dry-run"])
    assert "would be submitted" in planned.output
    done = call([*server, "entity", "submit", str(tmp_path / "new.yaml"), "--reason", "why"])
    assert re.search(r"feed new is submitted \(.*new.yaml\)", done.output), done.output
    (tmp_path / "bad.yaml").write_text("kind: feed\nname: bad\n")
    refused = call([*server, "entity", "submit", str(tmp_path / "bad.yaml")])
    assert "frequency" in str(refused.exception)
    assert "feed new is deleted" in call([*server, "entity", "delete", "new"]).output
    killed = call([*server, "instance", "kill", "make", "--start", "2013-01-01T03:00Z"])
    assert killed.exit_code == 0, killed.output
    assert "KILLED" in call(["instance", "status", "make", "--start", "2013-01-01T03:00Z"]).output


def test_what_could_not_be_looked_at_is_an_error_here_too(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise StorageError("cluster 'primary': cannot look at /raw: permission denied")

    monkeypatch.setattr(triage_answers, "is_there", refuse)
    here, there = both(root, ["instance", "triage", "make", "2013-01-01T04:00Z", "--json"])
    assert (there.output, str(there.exception)) == (here.output, str(here.exception))
    assert "permission denied" in str(there.exception)


def test_what_is_about_this_machine_stays_here(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("validate", "secrets check"):
        assert "leave --server out" in str(call(["--server", root.url, *command.split()]).exception)
    assert "write an http URL" in str(call(["--server", "example", "entity", "list"]).exception)
    assert "--as is for this machine" in str(call(["--server", root.url, "--as", "ann", "entity", "list"]).exception)
    unreachable = call(["--server", "http://127.0.0.1:9", "entity", "list"]).exception
    assert "cannot be reached" in str(unreachable)
    no_text = call(["--server", root.url, "--colo", "c\udcc3\udcb4te", "entity", "list"]).exception
    assert isinstance(no_text, FalconError)
    assert "bytes that are no UTF-8, \\udcc3\\udcb4: set PYTHONUTF8=1" in str(no_text)
    monkeypatch.setenv("FALCON_TOKEN", "")
    assert "log in, or send a token" in str(call(["--server", root.url, "entity", "list"]).exception)


def test_a_token_is_kept_for_a_server(root: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("FALCON_TOKEN")
    for asked, said in (("ann", "is kept in"), ("", "no token for")):
        kept = CliRunner().invoke(falcon, ["login", root.url], input=f"{asked}\n")
        assert kept.exit_code == 0, kept.exception
        assert said in kept.output
        assert not asked or asked not in kept.output
        (file,) = (tmp_path / "falcon").iterdir()
        assert file.stat().st_mode & 0o077 == 0
        answer = call(["--server", root.url, "entity", "list"])
        assert answer.exit_code == (0 if asked else 1)
    wrong = CliRunner().invoke(falcon, ["login", "http://127.0.0.1:9"], input="ann\n")
    assert "cannot be reached" in str(wrong.exception)


def test_passwords_of_other_programs_are_not_sent(
    root: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login joe password hers\n")
    monkeypatch.setenv("NETRC", str(netrc))
    here, there = both(root, ["entity", "list"])
    assert (there.exit_code, there.output) == (0, here.output)


def test_a_token_goes_to_no_place_that_a_server_refers_to(root: Client) -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(307)
            self.send_header("Location", f"{root.url}{self.path}")
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        said = call(["--server", f"http://127.0.0.1:{server.server_port}", "entity", "list"])
    assert f"it refers to {root.url}/falcon/api/v1/entities" in str(said.exception)
