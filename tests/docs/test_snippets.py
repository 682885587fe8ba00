"""What pages show and nobody runs is right all the same: parts of entities, targets of make, options of commands."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from falcon_assets.catalog.yaml_files.yaml_nodes import compose_documents
from falcon_assets.catalog.yaml_files.yaml_values import PlainValues
from falcon_assets.features.messaging.cloud_events import cloud_event
from falcon_assets.history.events.instance_event import InstanceEvent, Notice
from falcon_assets.model.entity import KINDS
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.flow import Flow
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.main import falcon
from tests.builders import make_cluster, make_feed, make_process
from tests.docs import test_pages, test_recipes, test_tutorial
from tests.docs.pages import BLOCKS, EXECUTABLE, PAGES, README, Block, section
from tests.processes import CHECKOUT

OWN_LOCATION = ("docs/guides/python-api.md", "docs/guides/component.md")
"""In tests/test_python_api.py and tests/test_component.py."""
OPERATION = "An operation"
MAKE = {
    "cluster": make_cluster,
    "feed": make_feed,
    "process": make_process,
    "flow": lambda **part: Flow.model_validate({"kind": "flow", **part}),
}
PARTS = [block for block in BLOCKS if block.language == "yaml" and not block.file]
SHOWN = [line for block in BLOCKS if block.language in ("sh", "bash") for line in block.text.splitlines()]
_WRITTEN = re.compile(r"`((?:falcon|make|python) (?!\w+ -\w{2})[^`\n]+)`")  # `falcon entity -list` is Apache Falcon's
WRITTEN = [(page.name, text) for page in PAGES for text in _WRITTEN.findall(page.read_text())]
KNOWN = {"bash", "sh", "text", "yaml", "sql", "python", "graphql", "xml", "toml", "dockerfile", "json", "ini", "apache"}
INSTRUCTIONS = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER"}


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {block.language for block in BLOCKS} == KNOWN


def test_json_can_be_read() -> None:
    for block in BLOCKS:
        if block.language == "json":
            assert json.loads(block.text), block.page


def test_toml_can_be_read_and_images_have_known_instructions() -> None:
    """Nothing here builds an image."""
    for block in BLOCKS:
        if block.language == "toml":
            assert tomllib.loads(block.text)
        if block.language == "dockerfile":
            assert {line.split()[0] for line in block.text.splitlines()} <= INSTRUCTIONS


def test_the_event_on_the_page_is_what_is_published() -> None:
    block = next(block for block in BLOCKS if block.language == "json" and block.page.endswith("cloudevents.md"))
    at, instance = (datetime(2013, 1, 3, 6, *rest, tzinfo=UTC) for rest in ((12, 30), ()))
    source = "LANDED feed raw-flights primary 2013-01-03T06:00Z 4711"
    size = {"records": 1204, "bytes": 90112, "files": 4}
    run = {"id": None, "version": "3f9a12c0", "previous_version": "77c0de11", "process": None, **size}
    landed = InstanceEvent(EventKind.LANDED, "feed", "raw-flights", "primary", instance, at, source, run=run)
    published = cloud_event(Notice("messaging of primary", "feed", "raw-flights", landed))
    assert list(json.loads(block.text).items()) == list(published.attributes.items())


def test_the_operation_on_the_page_is_the_one_that_is_there() -> None:
    (block,) = section(OPERATION)
    there = {"__name__": __name__}
    exec(block.text, there)
    on_the_page = command(there["KillInstances"], print)  # type: ignore[arg-type]
    with click.Context(falcon) as context:
        instance = falcon.get_command(context, "instance")
        assert isinstance(instance, click.Group)
        there_is = instance.get_command(click.Context(instance, parent=context), "kill")
        assert there_is is not None
        shown, is_shown = (one.to_info_dict(context) for one in (on_the_page, there_is))
    assert shown["params"] == is_shown["params"]
    assert is_shown["help"].startswith(shown["help"])


def test_every_executable_block_is_executed() -> None:
    executable = [block for block in BLOCKS if block.language in EXECUTABLE]
    of_pages = {
        *test_pages.RUN,
        test_pages.DEPLOYMENT,
        test_pages.OPERATIONS,
        test_tutorial.TUTORIAL,
        test_tutorial.LINEAGE,
        test_tutorial.CAPTURE,
        *OWN_LOCATION,
    }
    of_headings = {*test_recipes.RECIPES, test_pages.LANDING, test_tutorial.FIRST, OPERATION}
    left = [block for block in executable if block.page not in of_pages and block.heading not in of_headings]
    assert left == []
    assert of_pages | of_headings <= {name for block in executable for name in (block.page, block.heading)}


@pytest.mark.parametrize("block", PARTS, ids=lambda block: block.page)
def test_a_part_of_an_entity_is_legal_in_one(block: Block) -> None:
    for root in compose_documents(block.text):  # to which `on` is a word
        said = PlainValues().convert(root)
        if block.title:
            MAKE[block.title](**said)
        else:
            KINDS[said["kind"]].model_validate(said)


@pytest.mark.parametrize("line", [line for line in SHOWN if re.search(r"(^|\s)(falcon|make|python) ", line)])
def test_a_shown_command_exists_with_its_options(line: str) -> None:
    words = shlex.split(line, comments=True)
    while words and "=" in words[0]:  # variables of the command's environment
        words.pop(0)
    if "|" in words and "falcon" not in words[:1]:  # what it reads
        words = words[words.index("|") + 1 :]
    _check(words[: next((at for at, word in enumerate(words) if word in (">", "||", "|")), None)])


@pytest.mark.parametrize("text", [text for _, text in WRITTEN], ids=[f"{page}: {text}" for page, text in WRITTEN])
def test_a_command_in_the_text_exists(text: str) -> None:
    _check(shlex.split(text), complete=False)


def _check(words: list[str], *, complete: bool = True) -> None:
    """Parses a command as far as it is written, and runs nothing."""
    if words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word]
        assert all(re.search(rf"^{target}:", (CHECKOUT / "Makefile").read_text(), re.MULTILINE) for target in targets)
        return
    if words[0] == "python":
        assert find_spec(words[2])
        assert words[2] != "examples.flights" or find_spec(f"examples.flights.{words[3]}")
        return
    command, rest = falcon, words[1:]
    context = click.Context(command, info_name="falcon")
    while isinstance(command, click.Group) and (rest := _after_options(command, rest)) and rest[0][0] not in "-.":
        name, command, rest = command.resolve_command(context, rest)
        context = click.Context(command, info_name=name, parent=context)
    known = {name for parameter in command.get_params(context) for name in parameter.opts}
    assert {word.partition("=")[0] for word in rest if word.startswith("-")} <= known
    if complete:
        command.make_context(context.info_name, list(rest), parent=context.parent, resilient_parsing=False)


def _after_options(group: click.Group, words: list[str]) -> list[str]:
    """What follows the options of a group that have a value, where anything does."""
    options = {name for one in group.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts}
    while len(words) > 2 and words[0] in options:
        words = words[2:]
    return words


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 150


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)", README.read_text()))
def test_a_link_of_the_readme_leads_somewhere(link: str) -> None:
    assert (CHECKOUT / link).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_path_of_the_checkout_exists(page: Path) -> None:
    named = re.findall(r"`((?:falcon_assets|tests|docs|examples|entity_defs)/[^`*<$ ]*)`", page.read_text())
    assert [path for path in named if not (CHECKOUT / path).exists()] == []
