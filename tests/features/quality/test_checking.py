"""Versions are checked once after they have landed; the verdict is in Dagster's log, and in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import select, text

from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.history.tables import QUALITY_ATTEMPTS, QUALITY_VERDICTS
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.features.quality.shop import BAD, CHECKS, GOOD, anew, at, checking, feed, land, shop, verdict
from tests.operations.opening import OpenAt

Write = Callable[[dict[str, str]], Path]


@pytest.fixture(scope="module")
def opened_once(settings: Settings) -> Iterator[Installation]:
    """Opening an installation takes longer than most checks."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_CLOCK", "2013-01-01T12:00Z")
        with open_installation() as opened:
            yield opened


@pytest.fixture
def open_shop(opened_once: Installation, write_entities: Write) -> Callable[..., Installation]:
    def install(definitions: dict[str, str]) -> Installation:
        write_entities(definitions)
        opened_once.forget_entities()
        return anew(opened_once)

    return install


def evaluations(installation: Installation, name: str, partition: str) -> list[dg.AssetCheckEvaluation]:
    key = dg.AssetCheckKey(dg.AssetKey(["primary", "sales"]), name)
    storage = installation.instance.event_log_storage
    found = storage.get_asset_check_execution_history(key, limit=20, cursor=None)
    said = [one.event.dagster_event.event_specific_data for one in found if one.event and one.event.dagster_event]
    return [one for one in said if one.partition == partition]


def all_rows(installation: Installation) -> list[Any]:
    with installation.ledger.engine.connect() as connection:
        rows = connection.execute(select(QUALITY_VERDICTS).order_by(QUALITY_VERDICTS.c.instance))
        return [tuple(row) for row in rows]


def test_what_landed_is_checked_once_and_shown_by_dagster(open_shop: Callable[..., Installation]) -> None:
    installation = open_shop(shop())
    land(installation, 1, *GOOD)
    land(installation, 2, *BAD)
    assert checking(installation).run(installation.ledger) == (2, [])
    good, bad = verdict(installation, 1), verdict(installation, 2)
    assert good and bad
    assert (good.verdict, bad.verdict) == (InstanceVerdict.VALID, InstanceVerdict.INVALID)
    assert [(one.name, one.passed, one.severity) for one in bad.checks] == [
        ("enough", True, "error"),
        ("not_null_item", False, "warn"),
        ("unique_id", False, "error"),
        ("in_range_n", False, "error"),
    ]
    assert [one.said for one in bad.checks] == [
        "2 rows",
        "1 of 2 rows: item is null",
        "1 of 2 rows: id is as in another row",
        "1 of 2 rows: n is below 0",
    ]
    assert checking(installation).run(installation.ledger) == (0, [])
    partition = "2013-01-01T02:00Z"
    keys = {one: evaluations(installation, one, partition) for one in ("enough", "in_range_n", "not_null_item")}
    assert {name: [one.passed for one in found] for name, found in keys.items()} == {
        "enough": [True],
        "in_range_n": [False],
        "not_null_item": [False],
    }
    (shown,) = keys["in_range_n"]
    assert (shown.partition, shown.severity) == (partition, dg.AssetCheckSeverity.ERROR)
    assert {name: one.value for name, one in shown.metadata.items()} == {
        "rows": 2,
        "violations": 1,
        "checked_version": bad.version,
    }
    before = all_rows(installation)
    installation.ledger.rebuild()
    assert all_rows(installation) == before and len(before) == 2


def test_another_version_has_another_verdict(open_shop: Callable[..., Installation]) -> None:
    installation = open_shop(shop())
    land(installation, 1, *BAD)
    checking(installation).run(installation.ledger)
    first = verdict(installation, 1)
    land(installation, 1, *GOOD)
    assert verdict(installation, 1) is None
    assert checking(installation).run(installation.ledger) == (1, [])
    second = verdict(installation, 1)
    assert first and second and first.version != second.version
    assert (first.verdict, second.verdict) == (InstanceVerdict.INVALID, InstanceVerdict.VALID)
    land(installation, 1, *BAD)  # the first version again: its verdict is known
    assert checking(installation).run(installation.ledger) == (0, [])
    assert verdict(installation, 1) == first


def test_counts_and_distributions_are_compared_with_valid_instances_only(
    open_shop: Callable[..., Installation],
) -> None:
    checks = """
  - {rule: row_count, last: 3, percent: 50, name: usual}
  - {rule: drift, column: item, max_distance: 0.3}
  - {rule: drift, column: n, max_distance: 0.6}
"""
    installation = open_shop(shop(checks))
    ten = [{"id": one, "item": "ab"[one % 2], "n": one} for one in range(10)]
    for hour in (1, 2):
        land(installation, hour, *ten)
        checking(installation).run(installation.ledger)
    land(installation, 3, *ten[:2])
    checking(installation).run(installation.ledger)
    few = verdict(installation, 3)
    assert few and few.checks[0].said == "2 rows; more than 50 % from the mean of the last 2, 10"
    land(installation, 4, *({**one, "item": "c", "n": one["n"] + 100} for one in ten))
    checking(installation).run(installation.ledger)
    other = verdict(installation, 4)
    assert other
    assert [(one.name, one.passed) for one in other.checks] == [
        ("usual", True),
        ("drift_item", False),
        ("drift_n", False),
    ]
    assert [one.figures.get("distance") for one in other.checks] == [None, 1.0, 1.0]
    assert other.checks[0].figures["mean"] == 10  # not of the instance with two rows, which is invalid


def test_the_full_suite_follows_an_anomaly(open_shop: Callable[..., Installation]) -> None:
    checks = """
  - {rule: not_null, columns: [item], severity: warn}
  - {rule: sql, query: "SELECT * FROM data WHERE n < 0", suite: full}
"""
    installation = open_shop(shop(checks))
    land(installation, 1, *GOOD)
    land(installation, 2, *BAD)
    checking(installation).run(installation.ledger)
    quick, full = verdict(installation, 1), verdict(installation, 2)
    assert quick and full
    assert (quick.suite, [one.name for one in quick.checks]) == ("quick", ["not_null_item"])
    assert (full.suite, [one.name for one in full.checks]) == ("full", ["not_null_item", "sql"])
    assert full.verdict is InstanceVerdict.INVALID


def test_a_profile_is_kept_for_each_version(open_shop: Callable[..., Installation]) -> None:
    installation = open_shop(shop("", "profile: true"))
    land(installation, 1, *BAD)
    assert checking(installation).run(installation.ledger) == (1, [])
    found = verdict(installation, 1)
    assert found and found.profile and found.verdict is InstanceVerdict.VALID
    assert [(one.name, one.nulls, one.min, one.max) for one in found.profile] == [
        ("id", 0, 1, 1),
        ("item", 1, "b", "b"),
        ("n", 0, -1, 2),
    ]
    before = all_rows(installation)
    installation.ledger.rebuild()
    assert all_rows(installation) == before


def test_keys_are_waited_for(open_shop: Callable[..., Installation]) -> None:
    checks = "\n  - {rule: referential, columns: [item], feed: items}\n"
    definitions = {"all.yaml": shop(checks)["all.yaml"] + feed("items", "")}
    installation = open_shop(definitions)
    land(installation, 1, *GOOD)
    done, (problem,) = checking(installation).run(installation.ledger)
    assert done == 0
    assert problem == "sales 2013-01-01T01:00Z: waits for items 2013-01-01T01:00Z, whose keys are to be there"
    assert checking(installation).run(installation.ledger) == (0, [])  # not before a minute has passed
    land(installation, 1, {"item": "a"}, name="items")
    with installation.ledger.engine.begin() as connection:
        connection.execute(QUALITY_ATTEMPTS.update().values(retry_at=text("now() - interval '1 second'")))
    assert checking(installation).run(installation.ledger) == (1, [])
    found = verdict(installation, 1)
    assert found and [one.said for one in found.checks] == ["1 of 2 rows: item is not in items"]
    with installation.ledger.engine.connect() as connection:
        assert connection.execute(select(QUALITY_ATTEMPTS)).all() == []


def test_what_cannot_be_read_is_invalid_after_some_attempts(open_shop: Callable[..., Installation]) -> None:
    installation = open_shop(shop())
    folder = land(installation, 1, *GOOD)
    (folder / "part.json").write_text('{"id": 1}\nno json at all\n')
    collect_instances(installation, "sales", at(1), at(1))
    done, problems = checking(installation).run(installation.ledger)
    if done:  # Spark counts rows of JSON that it does not parse: each check says that it cannot be measured
        found = verdict(installation, 1)
        assert found and found.verdict is InstanceVerdict.INVALID
        assert any(one.problem for one in found.checks)
    else:
        assert "cannot be read" in problems[0]


def test_what_is_replaced_while_it_is_checked_has_no_verdict(
    open_shop: Callable[..., Installation], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = '\n  - {rule: python, function: "shop_replaces:now"}\n'
    installation = open_shop(shop(checks))
    folder = land(installation, 1, *GOOD)
    import sys
    import types

    def now(data: Any, instance: Any) -> bool:
        (folder / "more.json").write_text('{"id": 9}\n')
        return True

    module = types.ModuleType("shop_replaces")
    vars(module)["now"] = now
    monkeypatch.setitem(sys.modules, "shop_replaces", module)
    assert checking(installation).run(installation.ledger) == (0, [])
    with installation.ledger.engine.connect() as connection:
        tried = connection.execute(select(QUALITY_ATTEMPTS.c.attempts, QUALITY_ATTEMPTS.c.problem)).all()
    assert tried == [(1, "sales 2013-01-01T01:00Z was replaced while it was checked")]
    assert verdict(installation, 1) is None


class KilledError(BaseException):
    """Ends the process, as far as the code that it runs through can see."""


def test_a_kill_at_any_step_leaves_what_the_next_pass_completes(
    open_shop: Callable[..., Installation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each of four evaluations, and the verdict; ``tests/faults`` has real kills."""
    installation = open_shop(shop())
    ledger, write = installation.ledger, dg.DagsterInstance.report_runless_asset_event
    for step in range(1, 11):
        land(installation, step, *BAD)
        left = [step]

        def write_or_die(instance: dg.DagsterInstance, event: Any, left: list[int] = left) -> None:
            for after in (False, True):
                left[0] -= 1
                if left[0] == 0:
                    raise KilledError
                if not after:
                    write(instance, event)

        with monkeypatch.context() as patch:
            patch.setattr(dg.DagsterInstance, "report_runless_asset_event", write_or_die)
            with pytest.raises(KilledError):
                checking(installation).run(ledger)
        with ledger.engine.begin() as connection:
            connection.execute(QUALITY_ATTEMPTS.update().values(retry_at=text("now() - interval '1 second'")))
        is_recorded = step == 10
        assert checking(installation).run(ledger) == (0 if is_recorded else 1, []), step
        found = verdict(installation, step)
        assert found and found.verdict is InstanceVerdict.INVALID
        for name in ("enough", "not_null_item", "unique_id", "in_range_n"):
            assert evaluations(installation, name, f"2013-01-01T{step:02}:00Z"), name


def test_two_passes_at_once_check_each_version_once(open_shop: Callable[..., Installation]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    installation = open_shop(shop())
    for hour in range(1, 5):
        land(installation, hour, *GOOD)
    one = checking(installation)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: one.run(installation.ledger), range(3)))
    assert sum(done for done, _ in found) == 4
    assert len(all_rows(installation)) == 4
    assert len(evaluations(installation, "enough", "2013-01-01T01:00Z")) == 1


def test_old_and_unscheduled_versions_are_checked_on_request_only(
    open_shop: Callable[..., Installation], open_at: OpenAt
) -> None:
    installation = open_shop(shop())
    land(installation, 1, *GOOD)
    with open_at("2013-01-09T12:00Z") as later:
        assert checking(later).run(later.ledger) == (0, [])


def test_a_user_executes_checks_in_dagster(open_shop: Callable[..., Installation]) -> None:
    installation = open_shop(shop())
    land(installation, 1, *BAD)
    definitions = definitions_of(installation.entities, installation.settings)
    key = dg.AssetKey(["primary", "sales"])
    job = definitions.resolve_implicit_global_asset_job_def()
    chosen = dg.AssetCheckKey(key, "in_range_n")
    tags = {f"dagster/asset_partition_range_{end}": "2013-01-01T01:00Z" for end in ("start", "end")}
    selected = job.get_subset(asset_check_selection={chosen}, asset_selection=set())
    result = selected.execute_in_process(instance=installation.instance, tags=tags)
    (found,) = result.get_asset_check_evaluations()
    assert (found.check_name, found.passed, found.partition) == ("in_range_n", False, "2013-01-01T01:00Z")
    row = verdict(installation, 1)
    assert row and row.suite == "full" and len(row.checks) == 4


def test_the_sensor_starts_the_job_of_its_cluster(open_shop: Callable[..., Installation]) -> None:
    installation = open_shop(shop())
    land(installation, 1, *GOOD)
    definitions = definitions_of(installation.entities, installation.settings)
    sensor = definitions.get_repository_def().get_sensor_def("primary__quality")
    name = "primary__quality_checks_of_all_feeds_on_the_cluster"

    def tick() -> Any:
        with dg.build_sensor_context(instance=installation.instance, definitions=definitions) as context:
            return sensor.evaluate_tick(context)

    (request,) = tick().run_requests
    assert request.job_name in (None, name)
    result = definitions.get_job_def(name).execute_in_process(instance=installation.instance, raise_on_error=True)
    assert result.success and verdict(installation, 1)
    assert tick().run_requests == [] and "nothing is unchecked" in tick().skip_message


def test_checks_are_named_in_the_code_location(open_shop: Callable[..., Installation]) -> None:
    installation = open_shop(shop(CHECKS, "sla: {low: hours(1), high: hours(2)}"))
    graph = definitions_of(installation.entities, installation.settings).resolve_asset_graph()
    assert sorted(one.name for one in graph.asset_check_keys) == [
        *("enough", "in_range_n", "not_null_item", "sla", "unique_id"),
    ]
