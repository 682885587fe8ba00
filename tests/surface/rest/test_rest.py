"""REST on a real server: paths, bodies, problems, keys of requests, and what nobody may do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from sqlalchemy import func, select

from falcon_assets.history.tables import ANSWERED_REQUESTS, AUDIT
from falcon_assets.model.access import Role
from falcon_assets.operations.operation import data_of
from falcon_assets.settings import Settings
from falcon_assets.surface.rest.endpoints import endpoints
from falcon_assets.surface.rest.openapi import openapi
from falcon_assets.surface.served import ServedInstallation, open_served
from tests.builders import cluster_yaml, feed_yaml, process_yaml
from tests.surface.rest.servers import Client, serving

ANNS = {"owner": "ann", "group": "data", "permission": "0750"}
ENTITIES = "".join(
    [
        cluster_yaml("primary"),
        *map(feed_yaml, ("raw", "made")),
        feed_yaml("secret", acl=ANNS),
        process_yaml("make", "raw", "made"),
    ]
)
HOUR = "2013-01-01T03:00Z"


@pytest.fixture(scope="module")
def served(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[ServedInstallation]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_CLOCK", "2013-01-01T06:30Z")
        environment.setenv("FALCON_WEBSERVER_URL", "")
        with open_served(seconds=30) as found:
            yield found


@pytest.fixture(scope="module")
def root(served: ServedInstallation) -> Iterator[Client]:
    with serving(served) as client:
        yield client


def detail(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == status
    assert said["title"]
    assert said["type"]
    assert "Traceback" not in answer.text
    return str(said["detail"])


def test_lists_are_those_of_the_commands(root: Client, served: ServedInstallation) -> None:
    found = root.rest("GET", "/entities", params={"filter": ["kind=feed", "kind=process"], "sort": "-name", "limit": 2})
    assert [one["name"] for one in found.json()["items"]] == ["secret", "raw"]
    assert found.links["next"]["url"].endswith("offset=2")
    rest = root.ask("GET", found.links["next"]["url"])
    assert [one["name"] for one in rest.json()["items"]] == ["make", "made"]
    assert "next" not in rest.links


def test_long_lists_go_on_by_keys(root: Client) -> None:
    names, url = list[str](), "/falcon/api/v1/instances?type=feed&name=raw&limit=4"
    while url:
        found = root.ask("GET", url)
        names += [one["instance"] for one in found.json()["items"]]
        url = found.links.get("next", {}).get("url", "")
    assert len(names) == len({*names}) == 7


def test_what_is_not_counted_has_no_total(root: Client) -> None:
    url = "/falcon/api/v1/instances?type=feed&name=raw&limit=4"
    counted, page = root.ask("GET", url).json(), root.ask("GET", f"{url}&uncounted=true").json()
    assert (counted["total"], page) == (7, {**counted, "total": None})


def test_definitions_travel_in_bodies(root: Client) -> None:
    yaml_text = feed_yaml("sent-as-yaml")
    planned = root.rest("POST", "/entities?dry_run=true", data=yaml_text, headers={"Content-Type": "application/yaml"})
    assert (planned.status_code, planned.json()["changed"], planned.json()["dry_run"]) == (200, True, True)
    assert root.rest("GET", "/entities/sent-as-yaml").status_code == 404
    done = root.rest("POST", "/entities", data=yaml_text, headers={"Content-Type": "application/yaml"})
    assert [one["action"] for one in done.json()["entities"]] == ["submitted"]
    entity = yaml.safe_load(feed_yaml("sent-as-json"))
    assert root.rest("POST", "/entities", json=entity).json()["entities"][0]["name"] == "sent-as-json"
    entity["description"] = "changed"
    changed = root.rest("PUT", "/entities", json={"definitions": [entity], "reason": "because"})
    assert changed.json()["reason"] == "because"
    gone = root.rest("DELETE", "/entities/sent-as-yaml,sent-as-json", params={"kind": "feed"})
    assert [one["action"] for one in gone.json()["entities"]] == ["deleted", "deleted"]


def test_bad_definitions_say_each_problem_with_its_line(root: Client) -> None:
    answer = root.rest("POST", "/entities", json={"definitions": "kind: feed\nname: bad\nfrequency: hours(0)\n"})
    assert "frequency" in detail(answer, 422)
    assert all(one.startswith("definitions:") for one in answer.json()["problems"])


@pytest.mark.parametrize(
    ("method", "path", "how", "status", "text"),
    [
        ("GET", "/entities/nothing", {}, 404, "'nothing'"),
        ("GET", "/nowhere", {}, 404, "/nowhere"),
        ("POST", "/entities", {}, 400, "submit needs names or definitions"),
        ("POST", "/entities", {"data": "{"}, 415, "application/json"),
        ("POST", "/entities", {"data": "{", "headers": {"Content-Type": "application/json"}}, 400, "no JSON"),
        ("POST", "/entities", {"json": [1]}, 400, "no JSON object"),
        ("POST", "/entities", {"json": {"actor": "ann", "definitions": "x"}}, 400, "actor"),
        ("POST", "/entities", {"json": {"definitions": 3}}, 400, "definitions"),
        ("POST", "/instances/make/rerun", {"json": {"start": "yesterday"}}, 400, "yesterday"),
        ("POST", "/instances/make/rerun", {"json": {"start": HOUR, "end": "2013-01-01T01:00Z"}}, 400, "before start"),
        ("GET", "/instances", {"params": {"limt": "3"}}, 400, "limt: there is no such parameter"),
        ("GET", "/instances", {"params": {"filter": "state"}}, 400, "field=value"),
        ("GET", "/instances", {"params": {"filter": "stat=x"}}, 400, "stat"),
        ("GET", "/instances", {"params": {"limit": ["3", "4"]}}, 400, "2 times"),
        ("GET", "/instances", {"data": "x"}, 400, "takes no body"),
        ("PATCH", "/entities", {}, 405, "GET, POST, PUT is"),
        ("DELETE", "/entities/raw", {}, 409, "make"),
        ("GET", "/lineage/raw/2013-01-01T00:30Z", {}, 404, ""),
    ],
)
def test_problems_say_what_is_wrong(
    root: Client, method: str, path: str, how: dict[str, Any], status: int, text: str
) -> None:
    assert text in detail(root.rest(method, path, **how), status)


def test_nobody_is_asked_to_log_in(root: Client) -> None:
    nobody = Client(root.url, None)
    for path in ("/entities", "/openapi.json", "/", "/nowhere"):
        answer = nobody.rest("GET", path)
        assert detail(answer, 401)
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_key_has_one_answer(root: Client, served: ServedInstallation) -> None:
    def send(name: str) -> Any:
        return root.rest(
            "POST",
            "/entities",
            json={"definitions": feed_yaml(name)},
            headers={"Idempotency-Key": "k-1"},
        )

    first = send("once")
    assert (first.status_code, "Idempotent-Replayed" in first.headers) == (200, False)
    again = send("once")
    assert (again.status_code, again.content, again.headers["Idempotent-Replayed"]) == (200, first.content, "true")
    assert first.json()["entities"][0]["action"] == "submitted"
    assert "another request" in detail(send("other"), 422)
    assert root.rest("GET", "/entities/other").status_code == 404
    stranger = root.called("zoe", Role.EDITOR)
    own = stranger.rest(
        "POST", "/entities", json={"definitions": feed_yaml("hers")}, headers={"Idempotency-Key": "k-1"}
    )
    assert own.json()["entities"][0]["name"] == "hers"
    bad = root.rest("POST", "/entities", json={}, headers={"Idempotency-Key": "a b"})
    assert detail(bad, 400)


def test_of_the_same_request_at_once_one_is_performed(root: Client, served: ServedInstallation) -> None:
    def send(_: int) -> Any:
        body = {"definitions": feed_yaml("at-once")}
        return root.rest("POST", "/entities", json=body, headers={"Idempotency-Key": "at-once"})

    with ThreadPoolExecutor(6) as threads:
        found = [*threads.map(send, range(6))]
    assert {one.status_code for one in found} <= {200, 409}
    with served._shared.database.connect() as connection:
        done = select(func.count()).where(
            AUDIT.c.operation == "submit", AUDIT.c.entities.contains([{"name": "at-once"}])
        )
        assert connection.execute(done).scalar_one() == 1
        kept = select(ANSWERED_REQUESTS.c.status).where(ANSWERED_REQUESTS.c.key == "at-once")
        assert connection.execute(kept).scalar_one() == 200


def test_of_the_same_request_to_two_servers_at_once_one_is_performed(root: Client, served: ServedInstallation) -> None:
    body = {"definitions": feed_yaml("at-two")}
    with open_served(seconds=30) as second, serving(second) as other, ThreadPoolExecutor(6) as threads:
        key = {"Idempotency-Key": "at-two"}
        found = [
            *threads.map(
                lambda number: (root, other)[number % 2].rest("POST", "/entities", json=body, headers=key), range(6)
            )
        ]
        assert {one.status_code for one in found} <= {200, 409}
        assert other.rest("POST", "/entities", json=body, headers=key).headers["Idempotent-Replayed"] == "true"
        assert {one.rest("GET", "/entities/at-two").status_code for one in (root, other)} == {200}
    with served._shared.database.connect() as connection:
        done = AUDIT.c.entities.contains([{"name": "at-two"}])
        assert connection.execute(select(func.count()).where(AUDIT.c.operation == "submit", done)).scalar_one() == 1


def test_bodies_have_a_bound_whatever_they_declare(root: Client) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(60):
            yield b" " * 100_000

    headers = {"Content-Type": "application/json"}
    assert "5,000,000" in detail(root.rest("POST", "/entities", data=parts(), headers=headers), 413)
    deep = "[" * 100_000
    assert detail(root.rest("POST", "/entities", data=deep, headers=headers), 400)


def test_what_others_own_is_neither_shown_nor_changed(root: Client) -> None:
    eve, ann = root.called("eve", Role.EDITOR), root.called("ann", Role.VIEWER)
    assert "secret" not in [one["name"] for one in eve.rest("GET", "/entities").json()["items"]]
    assert detail(eve.rest("GET", "/entities/secret"), 403)
    assert detail(eve.rest("DELETE", "/entities/secret"), 403)
    other = {"definitions": feed_yaml("secret", frequency="days(1)")}
    assert "belongs to" in detail(eve.rest("POST", "/entities", json=other), 403)
    there = {"definitions": feed_yaml("raw", frequency="days(1)")}
    assert "role editor" in detail(root.called("zed", Role.VIEWER).rest("POST", "/entities", json=there), 403)
    assert detail(eve.rest("POST", "/entities", json=there), 409)
    assert ann.rest("GET", "/entities/secret/history").status_code == 200
    assert root.called("bob", Role.VIEWER, "data").rest("GET", "/entities/secret").status_code == 200
    answer = ann.rest("POST", "/entities/secret/touch")
    assert answer.json()["actor"] == "ann"


@pytest.mark.parametrize(
    "definition",
    [
        {"interfaces": {"write": {"endpoint": "/etc"}, "execute": {"endpoint": "local[1]"}}},
        {"interfaces": {"write": {"endpoint": "file:///etc"}, "execute": {"endpoint": "local[1]"}}},
        {"storage_options": {"key": {"file": "/etc/passwd"}}},
        {"storage_options": {"key": {"env": "FALCON_DATABASE_URL"}}},
    ],
    ids=["absolute", "url", "file", "variable"],
)
def test_definitions_over_the_network_name_nothing_of_the_server(root: Client, definition: dict[str, Any]) -> None:
    text = cluster_yaml("foreign", **definition)
    eve = root.called("eve", Role.EDITOR)
    assert "over the network only an admin may" in detail(
        eve.rest("POST", "/entities", json={"definitions": text}), 403
    )
    assert root.rest("GET", "/entities/foreign").status_code == 404


def test_names_are_never_paths_of_the_server(root: Client, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(feed_yaml("mine"))
    answer = root.rest("POST", "/entities", json={"names": [str(tmp_path / "mine.yaml")]})
    assert "files are not read here" in detail(answer, 400)
    assert detail(root.rest("GET", "/entities/..%2F..%2Fetc%2Fpasswd"), 404)
    assert detail(root.rest("POST", "/flows:compile", json={"names": ["/etc/passwd"]}), 400)


def test_lines_of_the_log_and_of_answers_are_not_made_by_names(root: Client) -> None:
    said = detail(root.rest("GET", "/entities/x%0dSet-Cookie:%20a=b%1b[31m"), 404)
    assert said.isprintable()
    answer = root.rest("GET", "/entities/x%0d%0aSet-Cookie:%20a=b")
    assert answer.status_code == 404
    assert "Set-Cookie" not in answer.headers


def test_each_operation_asks_for_its_role(root: Client) -> None:
    viewer, nobody = root.called("eve", Role.VIEWER), Client(root.url, None)
    for one in endpoints():
        path = one.path
        for name in one.placed:
            path = path.replace(
                f"{{{'name' if name == 'names' else name}}}", HOUR if name in ("instance", "start") else "make"
            )
        assert nobody.rest(one.method, path).status_code == 401, one.path
        how: dict[str, Any] = {"json": {}} if one.has_body else {}
        for role in Role:
            if role < one.operation.role and not one.operation.of_owners:
                answer = root.called("eve", role).rest(one.method, path, **how)
                assert answer.status_code in (400, 403), (one.path, role, answer.text)
                assert answer.status_code == 403 or "missing" in answer.text
    assert detail(viewer.rest("POST", "/entities/make/schedule"), 403)
    assert detail(viewer.rest("POST", "/instances/make/kill", json={"start": HOUR}), 403)


def test_openapi_describes_every_operation_and_the_page_shows_it(root: Client) -> None:
    described = root.rest("GET", "/openapi.json").json()
    assert described == json.loads(json.dumps(openapi()))
    assert {one["operationId"] for path in described["paths"].values() for one in path.values()} == {
        one.name for one in endpoints()
    }
    for path in described["paths"].values():
        for one in path.values():
            for parameter in one["parameters"]:
                Draft202012Validator.check_schema(parameter["schema"])

    class Page(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.loaded: list[str] = []
            self.shown: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]
            self.shown += [dict(attrs)["id"] or ""] if tag == "details" else []

    page = Page()
    page.feed(root.rest("GET", "/").text)
    assert page.loaded == ["openapi.json"]
    assert {*page.shown} == {one.name for one in endpoints()}


def test_data_is_that_of_the_command(root: Client, served: ServedInstallation) -> None:
    from falcon_assets.features.entities.listing import show_entity
    from falcon_assets.operations.installation import open_installation

    with open_installation(served._shared.settings) as installation:
        assert root.rest("GET", "/entities/make").json() == data_of(show_entity(installation, "make", None))
