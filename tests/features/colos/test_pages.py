"""Pages of a front of several colos: what all of them have, with its colo, and who does not answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.surface.pages.routes import FORMS, VIEWS
from falcon_assets.surface.rest.endpoints import adapter_of
from tests.builders import feed_yaml, on, process_yaml
from tests.features.colos.worlds import World, lakes, world
from tests.surface.pages.served import Answer, Person, serving

__all__ = ["world"]
AT = "2013-01-01T02:00Z"
SPAN = "&start=2013-01-01T00:00Z&end=2013-01-01T03:00Z"


@pytest.fixture(scope="module")
def pages(world: World) -> Iterator[str]:
    """The address of the pages; each colo has a feed of its own, ``raw`` is in both, and west has a process."""
    world.clean()
    adapter_of(ListEntities)  # made once for all, which takes longer than a time-out on a busy machine
    feeds = feed_yaml("raw", on("east-lake", type="source"), on("west-lake", type="target"))
    feeds += feed_yaml("a", on("east-lake")) + feed_yaml("b", on("west-lake"))
    feeds += process_yaml("make", "b", None, on("west-lake"))
    for one in world.colos.values():
        (one.settings.entity_defs / "a.sql").write_text("SELECT 1")
    answer = world.post("submit", lakes("east", "west") + feeds)
    assert answer.status_code == 200, answer.text
    with serving(world.served, "edi", prism=world.prism) as address:
        yield address


@pytest.fixture
def edi(pages: str, world: World) -> Iterator[Person]:
    """An editor; afterwards all colos run."""
    yield Person(pages, "edi")
    for one in world.colos.values():
        if not one.is_up:
            one.stop()
            one.start()


def seen(answer: Answer) -> str:
    """The text of a page, without its tags."""
    text = re.sub("</?(bdi|strong|small)>", "", answer.text)
    return " ".join(unescape(re.sub("<[^>]*>", " ", text)).split())


def shown(person: Person, path: str) -> str:
    answer = person.get(f"/falcon/{path}")
    assert answer.status == 200, f"{path}: {seen(answer)}"
    return seen(answer)


def test_lists_have_what_all_colos_have_with_their_colos(edi: Person) -> None:
    entities = shown(edi, "entities?sort=name")
    assert "raw feed east, west SUBMITTED" in entities
    assert "b feed west SUBMITTED" in entities
    assert "east-lake cluster east SUBMITTED" in entities
    assert "Read-only" not in entities
    listed = shown(edi, f"instances/list?type=feed{SPAN}")
    assert "a east east-lake 2013-01-01T00:00Z" in listed
    assert "raw west west-lake 2013-01-01T00:00Z" in listed
    grid = shown(edi, "instances?type=feed&start=2013-01-01T00:00Z")
    assert [grid.find(one) > 0 for one in ("a east-lake, east", "raw west-lake, west")] == [True, True]
    assert "4 rows" in grid
    assert "Nothing failed." in shown(edi, "")


def test_one_is_shown_by_its_colo_and_leads_there(edi: Person, world: World) -> None:
    west = world.colos["west"].settings.environ
    page = edi.get("/falcon/entity?name=b&kind=feed")
    there = re.search(r'<dt>Colos</dt><dd><a href="(https://localhost:[0-9]+/falcon/entity[^"]*)"', page.text)
    assert there and there[1].startswith(world.prism.url("west")), west["FALCON_COLO"]
    assert "kind: feed" in seen(page)
    instance = shown(edi, f"instance?name=b&cluster=west-lake&instance={AT}&type=feed")
    assert "feed b on west-lake Colo west" in instance
    assert "Make" not in instance
    of_process = shown(edi, f"instance?name=make&cluster=west-lake&instance={AT}")
    assert "process make on west-lake Colo west" in of_process
    assert "b" in shown(edi, f"instance/triage?name=make&cluster=west-lake&instance={AT}")
    assert "edit" not in shown(edi, "entity/edit?name=b&kind=feed").casefold().split()


def test_what_cannot_be_put_together_leads_to_the_colos(edi: Person, world: World) -> None:
    answer = edi.get("/falcon/quality?feed=b")
    places = re.findall(r'<li><a href="([^"]*)">', answer.text)
    assert places == [f"{world.prism.url(one)}/falcon/quality?feed=b" for one in ("east", "west")]
    only = edi.get("/falcon/lineage?feed=b&cluster=west-lake")
    assert world.prism.url("east") not in only.text
    assert "Each colo has a page of its own" in shown(edi, "templates")


@pytest.mark.parametrize("path", [one for one in VIEWS if one not in FORMS])
def test_no_page_fails(edi: Person, path: str) -> None:
    """Whatever is missing is said."""
    for query in ("", "?name=b&feed=b&kind=feed&cluster=west-lake&instance=" + AT, "?name=none&feed=none&version=1"):
        assert edi.get(f"/falcon/{path}{query}").status < 500, path


def test_who_does_not_answer_is_named(edi: Person, world: World) -> None:
    world.colos["west"].stop()
    entities = shown(edi, "entities")
    assert "Without west. Colo west does not answer: https://localhost" in entities
    assert ("a feed east" in entities, "b feed" in entities) == (True, False)
    part = edi.get("/falcon/entities", HX_Request="true")
    assert "Colo west does not answer" in seen(part)
    assert "Colo west does not answer" in shown(edi, "")
    assert "Colo west does not answer" in shown(edi, f"instances?type=feed{SPAN}")
    one = edi.get(f"/falcon/instance?name=b&cluster=west-lake&instance={AT}&type=feed")
    assert (one.status, "cannot be reached" in seen(one)) == (503, True)


def test_a_change_says_what_each_colo_makes_of_it(edi: Person, world: World) -> None:
    token = edi.token()
    about = [("command", "entity schedule"), ("names", "raw"), ("kind", "feed")]
    world.colos["west"].stop()
    done = edi.post("/falcon/change/confirmed", [token, *about])
    assert done.status == 200, seen(done)
    assert "east: done" in seen(done)
    assert re.search("west: away: https://localhost.* it is made up for when the colo takes it", seen(done))
    given = feed_yaml("raw", on("east-lake", type="source"), on("west-lake", type="target"), description="new")
    saved = edi.post("/falcon/entity/save", [token, ("name", "raw"), ("kind", "feed"), ("definitions", given)])
    assert "It is not done in all colos" in seen(saved), seen(saved)
    assert "west: away" in seen(saved)
    world.colos["west"].start()
    world.prism.making_up.heal()
    assert world.colos["west"].entities()["feed raw"]["description"] == "new"


def test_changes_of_instances_go_to_the_colo_of_their_cluster(edi: Person, world: World) -> None:
    about = [("command", "instance suspend"), ("name", "make"), ("cluster", "west-lake"), ("start", AT)]
    done = edi.post("/falcon/change/confirmed", [edi.token(), *about])
    assert done.status == 200, seen(done)
    asked = {name: {one for one in colo.audit() if "suspend" in one[1]} for name, colo in world.colos.items()}
    assert {name: {one[0] for one in those} for name, those in asked.items()} == {"east": set(), "west": {"edi"}}
