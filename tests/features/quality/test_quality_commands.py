"""The commands of quality: what they print, their exit codes, and what the audit keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from falcon_assets.errors import FalconError
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.audit import read_audit
from falcon_assets.operations.installation import Installation
from falcon_assets.surface.cli.main import falcon
from tests.features.landing.snapshot_tables import run
from tests.features.quality.shop import BAD, GOOD, anew, checking, land, shop, verdict
from tests.operations.opening import OpenAt

BAD_SHOWN = """\
sales 2013-01-01T02:00Z on primary: INVALID
check         | severity | result | found
enough        | error    | passed | 2 rows
not_null_item | warn     | failed | 1 of 2 rows: item is null
unique_id     | error    | failed | 1 of 2 rows: id is as in another row
in_range_n    | error    | failed | 1 of 2 rows: n is below 0
"""


@pytest.fixture
def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    write_entities(shop(more="profile: true\n"))
    with open_at("2013-01-01T12:00Z") as opened:
        anew(opened)
        land(opened, 1, *GOOD)
        land(opened, 2, *BAD)
        yield opened


def call(*words: str) -> Result:
    return CliRunner().invoke(falcon, ["quality", *words], prog_name="falcon")


def lines(text: str) -> list[str]:
    """Tables with nothing but their words, and a bar between columns."""
    rows = [line.strip("│┃┏┡└━┳┓╇┩┴┘─┬ ") for line in text.splitlines()]
    cells = ([cell.strip() for cell in row.replace("┃", "│").split("│")] for row in rows if row)
    return [" | ".join(row).strip(" |") for row in cells]


def plain(text: str) -> list[str]:
    return [" | ".join(cell.strip() for cell in line.split("|")).strip(" |") for line in text.splitlines()]


def test_an_instance_is_shown_checked_and_accepted(installation: Installation) -> None:
    before = call("show", "sales", "2013-01-01T02:00Z")
    assert (before.exit_code, before.output) == (0, "sales 2013-01-01T02:00Z on primary: UNCHECKED\n")
    checked = call("check", "sales", "2013-01-01T02:00Z")
    assert checked.exit_code == 1, checked.output
    assert lines(checked.output) == plain(BAD_SHOWN)
    assert lines(call("show", "sales", "2013-01-01T02:00Z").output) == plain(BAD_SHOWN)
    (listed,) = list_instances(
        installation, InstanceQuery("sales", "feed", start=parse_instant("2013-01-01T02:00Z"))
    ).items
    said = listed.as_data()["feed"]["quality"]
    assert (said["text"], said["verdict"], said["accepted_by"]) == ("invalid", "INVALID", None)
    assert said["failed"]
    assert call("check", "sales", "2013-01-01T01:00Z").exit_code == 0
    assert call("accept", "sales", "2013-01-01T02:00Z").exit_code == 2  # without a reason
    tried = call("accept", "sales", "2013-01-01T02:00Z", "--reason", "a holiday", "--dry-run")
    assert lines(tried.output)[:2] == [
        "sales 2013-01-01T02:00Z on primary: VALID",
        f"accepted by {installation.settings.user}: a holiday",
    ]
    assert json.loads(call("show", "sales", "2013-01-01T02:00Z", "--json").output)["verdict"] == "INVALID"
    assert call("accept", "sales", "2013-01-01T02:00Z", "--reason", "a holiday").exit_code == 0
    shown = json.loads(call("show", "sales", "2013-01-01T02:00Z", "--json").output)
    assert (shown["verdict"], shown["accepted"]["reason"], shown["records"]) == ("VALID", "a holiday", 2)
    assert call("check", "sales", "2013-01-01T02:00Z", "--rerun").exit_code == 0  # a person has overruled it
    before_rebuild = shown["accepted"]
    installation.ledger.rebuild()
    again = json.loads(call("show", "sales", "2013-01-01T02:00Z", "--json").output)
    assert again["accepted"] == before_rebuild
    land(installation, 2, *BAD, {"id": 7})
    assert json.loads(call("show", "sales", "2013-01-01T02:00Z", "--json").output)["verdict"] == "UNCHECKED"
    with installation.database.connect() as connection:
        entries, _ = read_audit(connection, (), None, 0, 100)
    told = [(one.operation, one.result, one.reason) for one in entries if one.operation.startswith("quality")]
    assert told.count(("quality accept", "done", "a holiday")) == 1
    assert {("quality check", "done", "")} <= set(told)


def test_a_profile_is_shown_whether_it_is_kept_or_not(installation: Installation) -> None:
    first = json.loads(call("profile", "sales", "2013-01-01T02:00Z", "--json").output)
    assert first["kept"] is False
    checking(installation).run(installation.ledger)
    kept = json.loads(call("profile", "sales", "2013-01-01T02:00Z", "--json").output)
    assert kept == {**first, "kept": True}
    assert {one["name"]: one["nulls"] for one in kept["columns"]} == {"id": 0, "item": 1, "n": 0}
    said = lines(call("profile", "sales", "2013-01-01T02:00Z").output)
    assert said[0] == "sales 2013-01-01T02:00Z on primary: 2 rows"
    assert said[1] == "column | type | nulls | NaN | distinct | min | max | mean | 5% | 25% | 50% | 75% | 95%"
    assert said[4] == "n | int | 0 |  | 2 | -1 | 2 | 0.5 | -1 | -1 | -1 | 2 | 2"


def test_a_metric_over_instances_is_plotted(installation: Installation, tmp_path: Path) -> None:
    checking(installation).run(installation.ledger)
    file = tmp_path / "plot.svg"
    found = call("history", "sales", "--metric", "in_range_n.violations", "--svg", str(file))
    assert lines(found.output) == [
        "instance | verdict | in_range_n.violations",
        "2013-01-01T01:00Z | VALID | 0",
        f"2013-01-01T02:00Z | INVALID | 1 | {'█' * 40}",
    ]
    drawn = ElementTree.parse(file).getroot()
    assert [one.get("fill") for one in drawn.iter("{http://www.w3.org/2000/svg}circle")] == ["#2e7d32", "#c62828"]
    values = json.loads(call("history", "sales", "--metric", "item.nulls", "--json").output)["values"]
    assert [(one["instance"], one["value"]) for one in values] == [("2013-01-01T01:00Z", 0), ("2013-01-01T02:00Z", 1)]
    wrong = CliRunner().invoke(falcon, ["quality", "history", "sales", "--metric", "in_range_n.violation"])
    assert isinstance(wrong.exception, FalconError)
    assert "has the metric 'in_range_n.violation' (did you mean 'in_range_n.violations'?)" in str(wrong.exception)


ERRORS = {
    "unknown_feed": (["show", "sale", "2013-01-01T01:00Z"], "there is no feed 'sale' (did you mean 'sales'?)"),
    "no_instance": (["show", "sales", "2013-01-01T01:30Z"], "has no instance 2013-01-01T01:30Z"),
    "not_available": (["check", "sales", "2013-01-01T09:00Z"], "sales 2013-01-01T09:00Z is not available on primary"),
    "unchecked": (["accept", "sales", "2013-01-01T01:00Z", "--reason", "x"], "there is nothing to overrule"),
}


@pytest.mark.parametrize(("words", "said"), ERRORS.values(), ids=list(ERRORS))
def test_what_is_refused(installation: Installation, words: list[str], said: str) -> None:
    found = call(*words)
    assert isinstance(found.exception, FalconError) and said in str(found.exception), found.output


def test_without_checks_there_is_no_verdict(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> None:
    write_entities(shop(checks=""))
    with open_at("2013-01-01T12:00Z") as opened:
        anew(opened)
        land(opened, 1, *GOOD)
        shown = call("show", "sales", "2013-01-01T01:00Z")
        assert (shown.exit_code, shown.output) == (
            0,
            "sales 2013-01-01T01:00Z on primary: its feed declares no checks\n",
        )
        said = json.loads(call("show", "sales", "2013-01-01T01:00Z", "--json").output)
        assert (said["verdict"], said["state"], said["checks"]) == (None, None, [])
        refused = call("accept", "sales", "2013-01-01T01:00Z", "--reason", "why").exception
        assert isinstance(refused, FalconError)
        assert str(refused) == "sales 2013-01-01T01:00Z has no checks: there is nothing to overrule"


def test_falcon_run_checks_what_only_lands(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> None:
    """No process reads or writes it."""
    write_entities(shop())
    with open_at("2013-01-01T12:00Z") as opened:
        anew(opened)
        for hour, rows in ((1, GOOD), (2, BAD)):
            folder = opened.settings.home / f"data/primary/sales/2013-01-01-{hour:02}"
            folder.mkdir(parents=True)
            (folder / "part.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert run(opened).is_whole
        verdicts = [found.verdict.value for hour in (1, 2) if (found := verdict(opened, hour))]
        assert verdicts == ["VALID", "INVALID"]
