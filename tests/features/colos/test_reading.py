"""Questions to a front of several colos: their answers are put together, and who did not answer is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from falcon_assets.errors import SettingsError, UsageError
from falcon_assets.features.colos.asking import ColoAwayError, UnansweredError
from falcon_assets.features.colos.declaration import ClientCertificate, read_colos
from falcon_assets.features.colos.operations import ShowColos
from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.rest.endpoints import adapter_of
from tests.builders import feed_yaml, on
from tests.features.colos.worlds import World, lakes, said, world
from tests.features.logins.certificates import Authority

__all__ = ["world"]
LIMITED = {"start": "2013-01-01T00:00Z", "end": "2013-01-01T04:00Z"}


@pytest.fixture(scope="module")
def filled(world: World) -> Iterator[World]:
    """A feed in each colo, and ``raw`` in both."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_TOKEN", "ann")
        world.clean()
        adapter_of(ListEntities)  # made once for all, which takes longer than a time-out on a busy machine
        both = (on("east-lake", type="source"), on("west-lake", type="target"))
        feeds = feed_yaml("raw", *both) + feed_yaml("a", on("east-lake")) + feed_yaml("b", on("west-lake"))
        assert world.post("submit", lakes("east", "west") + feeds).status_code == 200
        yield world


@pytest.fixture
def filled_again(filled: World) -> Iterator[World]:
    """Afterwards all colos run."""
    yield filled
    for one in filled.colos.values():
        one.stop()
        one.start()


def call(world: World, *words: str) -> Result:
    return CliRunner().invoke(falcon, ["--server", world.client.url, *words])


def names(world: World, **params: object) -> list[str]:
    answer = world.client.rest("GET", "/entities", params=params)
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()["items"]]


def test_lists_have_what_all_colos_have_once(filled: World) -> None:
    assert sorted(names(filled)) == ["a", "b", "east-lake", "raw", "west-lake"]
    assert names(filled, filter="kind=feed", sort="-name") == ["raw", "b", "a"]
    page = filled.client.rest("GET", "/entities", params={"filter": "kind=feed", "sort": "name", "limit": 2})
    assert ([one["name"] for one in page.json()["items"]], page.json()["total"]) == (["a", "b"], 3)
    following = filled.client.ask("GET", page.headers["Link"].partition(">")[0].removeprefix("<"))
    assert [one["name"] for one in following.json()["items"]] == ["raw"]
    assert sorted(names(filled, filter="kind=feed", colo="west")) == ["b", "raw"]
    shown = call(filled, "entity", "list", "--filter", "kind=feed")
    assert shown.exit_code == 0, shown.exception
    assert [one for one in ("a", "b", "raw") if one in shown.output.split()] == ["a", "b", "raw"]


def test_instances_of_all_colos_are_in_one_order(filled: World) -> None:
    found, after = [], None
    while True:
        params = {"type": "feed", "sort": "instance", "limit": 7, **LIMITED, **({"after": after} if after else {})}
        answer = filled.client.rest("GET", "/instances", params=params)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += [(one["instance"], one["entity"], one["cluster"]) for one in page["items"]]
        if (after := page["next"]) is None:
            break
    places = [("a", "east-lake"), ("b", "west-lake"), ("raw", "east-lake"), ("raw", "west-lake")]
    hours = [f"2013-01-01T0{hour}:00Z" for hour in range(5)]
    assert found == [(hour, *place) for hour in hours for place in places]
    assert page["total"] == len(found)


def test_one_is_found_where_it_is(filled: World) -> None:
    assert call(filled, "entity", "show", "b").output.startswith("kind: feed")
    assert filled.client.rest("GET", "/entities/b").json()["clusters"] == ["west-lake"]
    assert filled.client.rest("GET", "/entities/none").status_code == 404
    assert filled.client.rest("GET", "/entities/b", params={"colo": "east"}).status_code == 404
    assert filled.client.rest("GET", "/entities/b", params={"colo": "moon"}).status_code == 400


def test_who_does_not_answer_is_named(filled_again: World) -> None:
    filled_again.colos["west"].stop()
    answer = filled_again.client.rest("GET", "/entities", params={"filter": "kind=feed"})
    assert sorted(one["name"] for one in answer.json()["items"]) == ["a", "raw"]
    assert answer.headers["Falcon-Unanswered"] == "west"
    shown = call(filled_again, "entity", "list")
    assert "without what is in these colos, which do not answer: west" in shown.stderr
    chosen = filled_again.client.rest("GET", "/entities", params={"colo": "west"})
    assert (chosen.status_code, "cannot be reached" in chosen.text) == (503, True)


def test_other_changes_go_to_one_colo(filled: World) -> None:
    touched = filled.client.rest("POST", "/entities/b/touch", json={})
    assert touched.status_code == 200, touched.text
    where = filled.client.rest("POST", "/entities/raw/touch", json={})
    assert (where.status_code, "say in which colo" in where.text) == (400, True)
    assert call(filled, "entity", "touch", "raw").exit_code == 1
    assert (
        CliRunner()
        .invoke(falcon, ["--server", filled.client.url, "--colo", "west", "entity", "touch", "raw"])
        .output.startswith("feed raw is touched")
    )
    only = filled.post("apply", feed_yaml("a", on("east-lake"), description="new"))
    assert said(only) == {"east": "done"}


def test_the_colos_of_a_front(filled_again: World) -> None:
    shown = call(filled_again, "admin", "colos", "--json")
    states = {one["name"]: one for one in json.loads(shown.stdout)["colos"]}
    assert shown.exit_code == 0, shown.output
    assert {name: (one["problem"], one["pending"]) for name, one in states.items()} == {
        "east": ("", 0),
        "west": ("", 0),
    }
    assert states["east"]["version"]
    assert states["east"]["revision"]
    assert abs(states["east"]["clock_difference"]) < 5
    filled_again.colos["west"].stop()
    changed = filled_again.post("apply", feed_yaml("b", on("west-lake"), description="new"))
    assert said(changed) == {"west": "away"}
    shown = call(filled_again, "admin", "colos")
    assert shown.exit_code == 1
    assert "1 entity not there yet" in shown.output
    assert "feed b: " in shown.output


def test_colos_are_for_fronts_of_several(filled: World) -> None:
    assert "--colo is for a server" in str(CliRunner().invoke(falcon, ["--colo", "east", "entity", "list"]).exception)
    with open_installation(filled.colos["east"].settings) as installation, pytest.raises(UsageError, match="--server"):
        ShowColos().run(installation)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ([{"name": "east", "url": "example.com"}], "must be an http or https URL"),
        ([{"name": "east", "url": "http://a", "tls": {"certificate": "a", "key": "b"}}], "over https only"),
        ([{"name": "east", "url": "http://a"}, {"name": "east", "url": "http://b"}], "'east' is there 2 times"),
        ([{"name": "east", "url": "http://a", "color": "red"}], "color"),
        ([{"name": "east, west", "url": "http://a"}], "'east, west' has a comma"),
        ([], "colos: must not be empty"),
    ],
    ids=["url", "tls", "twice", "unknown key", "comma", "empty"],
)
def test_mistakes_in_the_file_have_their_line(tmp_path: Path, declared: object, says: str) -> None:
    file = tmp_path / "colos.yaml"
    file.write_text(yaml.safe_dump({"colos": declared}))
    with pytest.raises(SettingsError) as error:
        read_colos(file)
    assert str(error.value).startswith("FALCON_COLOS: no colo can be reached:")
    assert "colos.yaml:" in str(error.value)
    assert says in str(error.value)


def test_a_token_without_a_value_is_said(tmp_path: Path) -> None:
    file = tmp_path / "colos.yaml"
    file.write_text(yaml.safe_dump({"colos": [{"name": "east", "url": "http://a", "token": {"env": "NONE"}}]}))
    (colo,) = read_colos(file).colos
    with pytest.raises(SettingsError, match="east: the environment variable NONE has no value"):
        colo.secret({})
    assert colo.secret({"NONE": "hush"}) == "hush"


def test_strangers_are_not_believed(filled: World, tmp_path: Path) -> None:
    colo, ann = filled.prism.asked.colos["east"], Principal("ann", role=Role.EDITOR)
    with pytest.raises(ColoAwayError, match="log in first"):
        filled.prism.asked.perform(colo.model_copy(update={"tls": None}), ann, ListEntities())
    other = Authority.make(tmp_path, "other")
    with pytest.raises(ColoAwayError, match="cannot be reached"):
        filled.prism.asked.perform(colo.model_copy(update={"authorities": other.pem}), ann, ListEntities())
    certificate, key = other.issue("prism")
    forged = ClientCertificate(certificate=certificate, key=key)
    with pytest.raises((ColoAwayError, UnansweredError)):
        filled.prism.asked.perform(colo.model_copy(update={"tls": forged}), ann, ListEntities())
