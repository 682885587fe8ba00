"""An operation is declared once: what a command is given, what a job is told and what is printed follow from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner
from pydantic import AfterValidator, Field

from falcon_assets.errors import QueryError
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import Instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Result, data_of
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.declared import command

TEN = datetime(2013, 1, 1, 10, tzinfo=UTC)


class Color(Enum):
    RED = "RED"
    BLUE = "BLUE"


@dataclass(frozen=True)
class Part(Result):
    color: Color
    at: Instant
    seen_at: datetime
    keys = ("color", "instance=at", "seen_at", "is_red")

    @property
    def is_red(self) -> bool:
        return self.color is Color.RED


@dataclass(frozen=True)
class Painted(Result):
    name: str
    parts: tuple[Part, ...]
    by_color: dict[Color, int]
    failed: bool


def _no_spaces(text: str) -> str:
    if " " in text:
        raise ValueError("it has spaces")
    return text


class Paint(Change):
    """Paint THINGS.

    With any color.
    """

    command = "thing paint"
    things: Annotated[tuple[str, ...], Given("THING...")]
    instance: Annotated[Instant, Given("INSTANCE")]
    color: Color = Field(Color.RED, description="Which color.")
    only: Annotated[Literal["in", "out"] | None, Given(flags=("--side",))] = Field(None, description="Which side.")
    layers: Annotated[int, Given(shows_default=True)] = Field(2, ge=1, le=5, description="So many.")
    dries: Frequency | None = Field(None, description="For so long.")
    label: Annotated[str, AfterValidator(_no_spaces)] = Field("", description="What is written on it.")
    options: dict[str, str] = Field({}, description="More.")
    note: Annotated[str, Given(programs_only=True)] = Field("", description="Never on a command line.")

    def run(self, installation: Installation) -> Painted:
        if self.layers == 5:
            raise QueryError("too thick")
        part = Part(self.color, self.instance, self.instance)
        return Painted(self.things[0], (part,), {self.color: self.layers}, failed=self.dry_run)


def call(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command(Paint, click.echo), arguments)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def test_the_help_is_the_declaration(settings: Settings) -> None:
    code, text = call("--help")
    assert code == 0
    said = " ".join(text.split())
    assert "Usage: paint [OPTIONS] THING... INSTANCE Paint THINGS. With any color." in said
    for part in ("--color [red|blue] Which color.", "--side [in|out] Which side.", "[default: 2; 1<=x<=5]", "--json"):
        assert part in said
    assert said.index("--label") < said.index("--reason TEXT Reason for the change, kept in the audit log.")
    assert "--note" not in said
    assert "--actor" not in said


def test_json_is_the_data_of_the_result(settings: Settings) -> None:
    code, text = call("a", "b", "2013-01-01T10:00Z", "--color", "blue", "--layers", "3", "--json")
    part = {
        "color": "BLUE",
        "instance": "2013-01-01T10:00Z",
        "seen_at": "2013-01-01T10:00:00+00:00",
        "is_red": False,
    }
    assert (code, json.loads(text)) == (0, {"name": "a", "parts": [part], "by_color": {"BLUE": 3}, "failed": False})
    assert list(data_of(Part(Color.RED, TEN, TEN))) == ["color", "instance", "seen_at", "is_red"]


def test_what_failed_has_exit_code_1(settings: Settings) -> None:
    assert call("a", "2013-01-01T10:00Z", "--dry-run")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    {
        ("a",): "Missing argument",
        ("a", "2013-01-01T10:00Z", "--layers", "6"): "6 is not in the range 1<=x<=5",
        ("a", "2013-01-01T10:00Z", "--dries", "soon"): "Invalid value for '--dries'",
        ("a", "2013-01-01T10:00Z", "--color", "green"): "'green' is not one of",
        ("a", "2013-01-01T10:00Z", "--label", "a b"): "Invalid value for '--label': it has spaces",
    }.items(),
)
def test_what_cannot_be_understood_has_exit_code_2(arguments: tuple[str, ...], says: str, settings: Settings) -> None:
    code, text = call(*arguments)
    assert (code, says in " ".join(text.split())) == (2, True), text
