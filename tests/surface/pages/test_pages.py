"""The pages as a server sends them: what they show, and what attackers cannot make of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from falcon_assets.instances.operations.questions import ListInstances
from falcon_assets.instances.views.grid import MOST_STEPS
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.page_links import link_of, read_back
from falcon_assets.settings import Settings
from falcon_assets.surface.pages.routes import FORMS, VIEWS
from falcon_assets.surface.registry import registry
from falcon_assets.surface.served import open_served
from tests.builders import cluster_yaml, feed_yaml, process_yaml
from tests.hours import hour
from tests.operations.opening import OpenAt
from tests.operations.rows import feed_row, process_row, write
from tests.surface.pages.served import Answer, Person, serving

SCRIPT = "</td><script>window.owned=1</script><img src=x onerror=window.owned=1>"
ODD = f"{SCRIPT} 'a\"b' 50% ü \u202eabc"
ENTITIES = (
    cluster_yaml("primary", colo="east")
    + feed_yaml("raw", schedule=True, tags={"note": ODD}, description=ODD)
    + feed_yaml("made", checks=[{"rule": "row_count", "min": 1}])
    + process_yaml("make", "raw", "made", schedule=True, tags={"note": ODD, "team": "data"}, pipelines=["first"])
    + feed_yaml("covert-raw", acl={"owner": "ann", "group": "data", "permission": "0750"})
    + process_yaml("covert-make", "covert-raw", None, acl={"owner": "ann", "group": "data", "permission": "0750"})
    + process_yaml("open-make", "raw", None, acl={"owner": "ann", "group": "data", "permission": "0755"})
)
AT = "2013-01-01T12:30Z"


def filled(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    """The installation with these entities, and rows of theirs."""
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with open_at(AT) as found:
        write(found, *(feed_row("raw", number) for number in range(6)))
        write(found, *(process_row("make", number, "SUCCEEDED") for number in range(3)))
        write(found, process_row("make", 3, "FAILED", reason=ODD, failures=9, run_id="run-3"))
        write(found, process_row("covert-make", 3, "FAILED", reason="covert trouble", failures=9))
        yield found


@pytest.fixture
def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    yield from filled(open_at, write_entities)


@pytest.fixture
def address(installation: Installation, settings: Settings) -> Iterator[str]:
    with open_served() as served, serving(served) as found:
        yield found


LINKS = [
    "/falcon/",
    "/falcon/instances?start=2013-01-01T00:00Z",
    "/falcon/instances?type=feed&step=minutes(15)",
    "/falcon/instances/list",
    "/falcon/instances/list?type=feed&name=raw",
    "/falcon/instance?name=make&instance=2013-01-01T03:00Z",
    "/falcon/instance?name=raw&instance=2013-01-01T03:00Z&type=feed",
    "/falcon/instance/triage?name=make&instance=2013-01-01T07:00Z",
    "/falcon/instance/data?name=make&instance=2013-01-01T07:00Z",
    "/falcon/instance/logs?name=make&instance=2013-01-01T07:00Z",
    "/falcon/change?command=instance+rerun&name=make&start=2013-01-01T03:00Z",
    "/falcon/entities",
    "/falcon/entity?name=make&kind=process",
    "/falcon/entity?name=raw&kind=feed",
    "/falcon/entity/edit",
    "/falcon/entity/edit?name=make&kind=process",
    "/falcon/flows",
    "/falcon/templates",
    "/falcon/quality",
    "/falcon/quality?feed=made",
    "/falcon/quality/instance?feed=made&instance=2013-01-01T03:00Z",
    "/falcon/lineage",
]


def wrong_of(answer: Answer) -> str:
    """What a page says that is an error."""
    found = re.search(r'<pre class="error"[^>]*>(.*?)</pre>', answer.text, re.DOTALL)
    return unescape(found[1]) if found else answer.text


def test_what_is_stored_is_text_on_every_page(address: str) -> None:
    person = Person(address)
    answers = {link: person.get(link) for link in LINKS}
    assert {link: wrong_of(one) for link, one in answers.items() if one.status != 200} == {}
    for link, answer in answers.items():
        assert "<script>window" not in answer.text and "<img src=x" not in answer.text, link
        inline = re.search(
            r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|javascript:", re.sub(r">[^<]*<", "><", answer.text)
        )
        assert inline is None, (link, inline)
        assert "script-src 'self'" in answer.headers["content-security-policy"], link
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")
    assert ODD in unescape(person.get("/falcon/").text)


def test_the_grid_has_runs_of_states_and_goes_to_instances(address: str) -> None:
    person = Person(address)
    page = person.get("/falcon/instances?start=2013-01-01T00:00Z&steps=24&name=make").text
    runs = re.findall(r'<a class="(\w+)" href="([^"]+)" title="([^"]+)">( +)</a>', page)
    assert [(state, len(cells)) for state, _, _, cells in runs] == [("SUCCEEDED", 3), ("FAILED", 1), ("WAITING", 9)]
    assert runs[0][2] == "SUCCEEDED: 3 instances from 2013-01-01T00:00Z"
    to_one = person.get(unescape(runs[1][1]))
    assert (to_one.status, to_one.headers["location"]) == (
        303,
        "/falcon/instance?name=make&cluster=primary&instance=2013-01-01T03%3A00Z",
    )
    several = person.get(unescape(runs[0][1])).headers["location"]
    assert several.startswith("/falcon/instances/list?") and "3 instances" in person.get(several).text
    for query, named in {
        "state=FAILED": True,
        "state=KILLED": False,
        "tag=team%3Ddata": True,
        "tag=other": False,
    }.items():
        assert (">make<" in person.get(f"/falcon/instances?start=2013-01-01T00:00Z&{query}").text) is named, query
    assert ">make<" in person.get("/falcon/instances?pipeline=first").text
    assert ">make<" not in person.get("/falcon/instances?pipeline=second").text
    refused = person.get(f"/falcon/instances?start=2013-01-01T00:00Z&steps={MOST_STEPS + 1}")
    assert (refused.status, "less than or equal to 2000" in refused.text) == (400, True)


def test_what_others_may_not_read_is_not_there(address: str) -> None:
    eve, ann = Person(address, "eve"), Person(address, "ann")
    for link in LINKS:
        assert "covert" not in eve.get(link).text, link
    for link in (
        "/falcon/entity?name=covert-make&kind=process",
        "/falcon/entity/edit?name=covert-make&kind=process",
        "/falcon/instance?name=covert-make&instance=2013-01-01T03:00Z",
        "/falcon/instance/triage?name=covert-make&instance=2013-01-01T03:00Z",
        "/falcon/instances?name=covert-make",
        "/falcon/quality/instance?feed=covert-raw&instance=2013-01-01T03:00Z",
    ):
        assert eve.get(link).status == 403, link
        assert "covert trouble" not in eve.get(link).text
    assert "covert trouble" in ann.get("/falcon/").text
    assert Person(address, "nobody").get("/falcon/").status == 401


def test_buttons_are_greyed_with_the_reason(address: str) -> None:
    link = "/falcon/instance?name=make&instance=2013-01-01T03:00Z"
    page = unescape(Person(address, "eve").get(link).text)
    reason = "eve may not rerun instances of: that needs the role launcher, and eve has the role viewer"
    assert f'<button type="button" disabled title="{reason}">Rerun</button>' in page
    assert ">Rerun …</a>" in Person(address, "leo").get(link).text
    owned = link.replace("make", "open-make")
    assert "which belongs to" in unescape(Person(address, "leo").get(owned).text)
    assert ">Rerun …</a>" in Person(address, "ann").get(owned).text


RERUN = [("command", "instance rerun"), ("name", "make"), ("cluster", "primary"), ("start", "2013-01-01T03:00Z")]


def state_of(installation: Installation) -> str:
    (found,) = ListInstances(name="make", start=hour(3)).run(installation).items
    return found.state.value


def test_a_rerun_is_planned_then_confirmed(address: str, installation: Installation) -> None:
    person = Person(address, "leo")
    plan = person.get("/falcon/change?command=instance+rerun&name=make&start=2013-01-01T03:00Z").text
    assert "1 instance would change" in plan and state_of(installation) == "FAILED"
    done = person.post("/falcon/change/confirmed", [*RERUN, ("reason", ODD), person.token()])
    assert (done.status, "1 instance changed" in done.text) == (200, True), done.text
    assert state_of(installation) == "WAITING"


def test_forms_of_others_change_nothing(address: str, installation: Installation) -> None:
    person, other = Person(address, "leo"), Person(address, "adam")
    token = person.token()
    refusals = {
        "without a token": person.post("/falcon/change/confirmed", RERUN),
        "with a wrong token": person.post("/falcon/change/confirmed", [*RERUN, ("form_token", "0" * 64)]),
        "with another's token": person.post("/falcon/change/confirmed", [*RERUN, other.token()]),
        "from another site": person.post("/falcon/change/confirmed", [*RERUN, token], Origin="https://evil.example"),
        "from nowhere": person.post("/falcon/change/confirmed", [*RERUN, token], Origin="null"),
        "across sites": person.post("/falcon/change/confirmed", [*RERUN, token], Sec_Fetch_Site="cross-site"),
        "of a sister": person.post("/falcon/change/confirmed", [*RERUN, token], Sec_Fetch_Site="same-site"),
        "as text": person.post("/falcon/change/confirmed", [*RERUN, token], Content_Type="text/plain"),
        "by a viewer": (eve := Person(address, "eve")).post("/falcon/change/confirmed", [*RERUN, eve.token()]),
        "another operation": person.post("/falcon/change/confirmed", [("command", "ledger rebuild"), token]),
        "as another user": person.post("/falcon/change/confirmed", [*RERUN, ("actor", "ann"), token]),
        "too large": person.post("/falcon/change/confirmed", [*RERUN, ("reason", "x" * 2_000_000), token]),
    }
    codes = {what: answer.status for what, answer in refusals.items() if what != "as another user"}
    assert codes == {
        **dict.fromkeys(codes, 403),
        "as text": 415,
        "another operation": 400,
        "too large": 413,
    }
    assert refusals["as another user"].status == 200  # the actor is left out: who asks is who is logged in
    for path in FORMS:
        assert person.get(f"/falcon/{path}").status in (404, 405), path
    for path in VIEWS:
        assert person.post(f"/falcon/{path}", [token]).status in (404, 405), path


def test_a_definition_is_checked_as_it_is_typed(address: str, settings: Settings) -> None:
    person = Person(address, "edi")
    wrong = feed_yaml("new").replace("hours(1)", "hours(0)")
    fields = [("name", ""), ("kind", ""), ("reason", ""), person.token()]
    checked = unescape(person.post("/falcon/entity/check", [("definitions", wrong), *fields], HX_Request="true").text)
    assert re.search(r"line \d+ of definitions", checked) and "hours(0)" in checked and "<html" not in checked
    fine = person.post("/falcon/entity/check", [("definitions", feed_yaml("new")), *fields], HX_Request="true").text
    assert "It is valid." in fine and not list(settings.entity_defs.rglob("new.yaml"))
    secret = settings.home / "secret.txt"
    secret.write_text("a secret of the server")
    files = person.post("/falcon/entity/check", [("definitions", str(secret)), ("names", str(secret)), *fields])
    assert "a secret of the server" not in files.text
    saved = person.post("/falcon/entity/save", [("definitions", feed_yaml("new")), *fields])
    assert (saved.status, saved.headers["location"]) == (303, "/falcon/entity?name=new&kind=feed")
    assert "hours(1)" in person.get(saved.headers["location"]).text
    viewer = Person(address, "eve")
    denied = viewer.post("/falcon/entity/save", [("definitions", feed_yaml("newer")), *fields[:-1], viewer.token()])
    assert (denied.status, "needs the role editor" in denied.text) == (422, True)


def test_times_are_in_the_zone_that_is_chosen(address: str) -> None:
    person = Person(address)
    link = "/falcon/instance?name=make&instance=2013-01-01T03:00Z"
    assert "make 2013-01-01T03:00Z" in person.get(link).text
    answer = person.post("/falcon/zone", [("zone", "Asia/Kolkata"), ("back", link), person.token()])
    assert (answer.status, answer.headers["location"]) == (303, link)
    assert "make 2013-01-01T08:30+05:30" in person.get(link).text
    away = person.post("/falcon/zone", [("zone", "../../x"), ("back", "//evil.example/falcon/"), person.token()])
    assert away.headers["location"] == "/falcon/"
    assert "make 2013-01-01T03:00Z" in person.get(link).text


def test_below_another_path(installation: Installation) -> None:
    with open_served() as served, serving(served, root="/data") as address:
        page = Person(address).get("/falcon/instance?name=make&instance=2013-01-01T03:00Z")
        assert page.status == 200
        links = re.findall(r'(?:href|src|action|hx-get)="(/[^"]*)"', page.text)
        assert links and all(link.startswith("/data/") for link in links)
        assert '<a href="/data/runs/run-3">' in page.text


def test_operations_and_pages_have_the_same_links() -> None:
    pages = {one.page for each in registry().values() if (one := each.load()).page is not None}
    assert pages <= VIEWS.keys()
    asked = ListInstances(
        name="a/b %<ü", start=hour(0), end=hour(3), type="feed", filters=(("state", "MISSING"), ("state", "EVICTED"))
    )
    link = link_of(asked)
    assert link.startswith("/falcon/instances/list?") and "name=a%2Fb+%25%3C%C3%BC" in link
    assert read_back(ListInstances, parse_qsl(link.partition("?")[2])) == asked
