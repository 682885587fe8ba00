"""Dagster's webserver with our routes, and what it lets whom do."""

from __future__ import annotations

from typing import Any

import pytest
from dagster_graphql.schema import create_schema

from falcon_assets.history.dagster_internals.permissions import OF_OWNERS, PERMISSIONS, Permissions
from falcon_assets.history.dagster_internals.stamps import PRINCIPAL
from falcon_assets.model.access import Role
from falcon_assets.surface.front.mutations import MUTATIONS
from tests.surface.front.conftest import Front

ADMIN, EDITOR, LAUNCHER, VIEWER = "adam ADMIN", "eva EDITOR", "leo LAUNCHER", "vic VIEWER"
OWNER, MEMBER = "ann VIEWER", "bob VIEWER data"
WHO = [ADMIN, EDITOR, LAUNCHER, VIEWER, OWNER, MEMBER]
SELECTOR = {"repositoryName": "__repository__", "repositoryLocationName": "served"}
LAUNCH = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename
  ... on LaunchRunSuccess { run { runId tags { key value } } } ... on Error { message } } }"""


def launch(front: Front, who: str, feed: str = "free", **metadata: Any) -> Any:
    selector = {**SELECTOR, "jobName": "__ASSET_JOB", "assetSelection": [{"path": ["primary", feed]}]}
    tags = [{"key": "dagster/partition", "value": "a"}, *metadata.pop("tags", [])]
    given = {"selector": selector, "executionMetadata": {"tags": tags, **metadata}}
    return front.post(LAUNCH, who, p=given)["data"]["launchRun"]


def test_ours_come_first_and_the_rest_is_dagsters(front: Front) -> None:
    assert front.get("/healthz").json() == {"status": "ok"}
    assert front.get("/healthz").headers["x-frame-options"] == "SAMEORIGIN"
    page = front.get("/", VIEWER, accept="text/html")
    assert page.status_code == 200
    assert "Dagster" in page.text
    assert "falcon_" in front.get("/metrics", VIEWER).text
    pages = front.get("/falcon/", VIEWER)
    assert (pages.status_code, "<h1>Today</h1>" in pages.text) == (200, True), pages.text
    for path in ("/", "/falcon/", "/metrics", "/server_info", "/logs/x", "/graphql"):
        assert front.get(path, accept="text/html").status_code == 401, path


def test_launched_by_is_who_asked_and_nothing_forged_stays(front: Front) -> None:
    forged = {"user": "root", PRINCIPAL: "x {}", "falcon/process": "p", "dagster/backfill": "b", "team": "mine"}
    done = launch(front, LAUNCHER, tags=[{"key": key, "value": value} for key, value in forged.items()])
    assert done["__typename"] == "LaunchRunSuccess", done
    tags = {one["key"]: one["value"] for one in done["run"]["tags"]}
    assert tags["user"] == "leo"
    assert tags["team"] == "mine"
    assert tags["dagster/partition"] == "a"
    assert not {"falcon/process", "dagster/backfill"} & tags.keys()
    again = """mutation($p: ReexecutionParams!) { launchRunReexecution(reexecutionParams: $p) { __typename
      ... on LaunchRunSuccess { run { tags { key value } } } ... on Error { message } } }"""
    given = {"parentRunId": done["run"]["runId"], "strategy": "ALL_STEPS", "useParentRunTags": True}
    (repeated,) = front.post(again, ADMIN, p=given)["data"].values()
    assert {"key": "user", "value": "adam"} in repeated["run"]["tags"], repeated


def test_backfills_say_who_started_them(front: Front) -> None:
    query = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) { __typename
      ... on LaunchBackfillSuccess { backfillId } ... on Error { message } } }"""
    given = {
        "assetSelection": [{"path": ["primary", "owned"]}],
        "partitionNames": ["a"],
        "tags": [{"key": "user", "value": "root"}],
    }
    (refused,) = front.post(query, LAUNCHER, p=given)["data"].values()
    assert refused["__typename"] == "UnauthorizedError"
    assert "which belongs to 'ann' and the group 'data'" in refused["message"]
    (done,) = front.post(query, OWNER, p=given)["data"].values()
    assert done["__typename"] == "LaunchBackfillSuccess", done
    found = "query($b: String!) { partitionBackfillOrError(backfillId: $b) { ... on PartitionBackfill { user } } }"
    assert front.post(found, VIEWER, b=done["backfillId"])["data"] == {"partitionBackfillOrError": {"user": "ann"}}


@pytest.mark.parametrize("who", WHO)
def test_who_may_launch_what(front: Front, who: str) -> None:
    types = {feed: launch(front, who, feed)["__typename"] for feed in ("free", "owned")}
    allowed = {
        "free": who in (ADMIN, EDITOR, LAUNCHER),
        "owned": who in (ADMIN, OWNER, MEMBER),
    }
    expected = {feed: "LaunchRunSuccess" if may else "UnauthorizedError" for feed, may in allowed.items()}
    assert types == expected


def test_the_ui_greys_out_what_is_refused(front: Front) -> None:
    query = """{ permissions { permission value } assetNodes { assetKey { path } hasMaterializePermission } }"""

    def seen(who: str) -> tuple[set[str], set[str]]:
        data = front.post(query, who)["data"]
        names = {one["permission"] for one in data["permissions"] if one["value"]}
        nodes = {one["assetKey"]["path"][-1] for one in data["assetNodes"] if one["hasMaterializePermission"]}
        return names, nodes

    assert seen(VIEWER) == (set(), set())
    assert seen(OWNER) == (set(), {"owned"})
    assert seen(MEMBER) == (set(), {"owned"})
    names, nodes = seen(LAUNCHER)
    assert "launch_pipeline_execution" in names
    assert "edit_sensor" not in names
    assert "free" in nodes
    assert seen(EDITOR)[0] >= {"edit_sensor", "reload_workspace"}
    assert seen(ADMIN)[0] >= {"delete_pipeline_run", "wipe_assets"}


def test_every_permission_and_mutation_of_dagsters_is_in_our_tables() -> None:
    assert {str(one) for one in Permissions} == {str(one) for one in PERMISSIONS}
    assert set(PERMISSIONS) >= OF_OWNERS
    mutations = create_schema().graphql_schema.mutation_type
    assert mutations is not None
    assert set(mutations.fields) == set(MUTATIONS)


_NO_ARGUMENTS = {
    "ExecutionParams": {"selector": {**SELECTOR, "jobName": "plain"}, "executionMetadata": {}},
    "ReexecutionParams": {"parentRunId": "none", "strategy": "ALL_STEPS"},
    "ScheduleSelector": {**SELECTOR, "scheduleName": "nightly"},
    "SensorSelector": {**SELECTOR, "sensorName": "looking"},
    "LaunchBackfillParams": {"assetSelection": [{"path": ["primary", "free"]}], "partitionNames": ["a"]},
    "RepositorySelector": SELECTOR,
    "ReportRunlessAssetEventsParams": {
        "eventType": "ASSET_OBSERVATION",
        "assetKey": {"path": ["primary", "free"]},
    },
    "ReportAssetCheckEvaluationsParams": {
        "assetKey": {"path": ["primary", "free"]},
        "checkName": "none",
        "passed": True,
    },
    "[ExecutionParams!]!": [{"selector": {**SELECTOR, "jobName": "plain"}, "executionMetadata": {}}],
    "[PartitionsByAssetSelector!]!": [{"assetKey": {"path": ["primary", "free"]}}],
    "[String!]!": ["none"],
    "String": "none",
    "Int": 1,
    "Float": 1.0,
    "Boolean": False,
}
_BY_NAME = {"repositoryLocationName": "nowhere", "locationName": "served", "partitionsDefName": "growing"}
NOT_IN_OPEN_SOURCE = ("setAppManagedComponent", "deleteAppManagedComponent")
"""Dagster itself refuses these, and what the deployment forbids stays forbidden."""


@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_the_role_that_each_mutation_needs(front: Front, mutation: str) -> None:
    schema = create_schema().graphql_schema
    assert schema.mutation_type is not None
    field = schema.mutation_type.fields[mutation]
    given = {
        name: _BY_NAME.get(name, _NO_ARGUMENTS.get(str(one.type), _NO_ARGUMENTS.get(str(one.type).rstrip("!"))))
        for name, one in field.args.items()
        if str(one.type).endswith("!") or name in ("reexecutionParams", "id")
    }
    types = {name: str(field.args[name].type) for name in given}
    heads = f"({', '.join(f'${name}: {kind}' for name, kind in types.items())})" if given else ""
    passed = f"({', '.join(f'{name}: ${name}' for name in given)})" if given else ""
    asks = "" if str(field.type) in ("Boolean", "Boolean!") else " { __typename ... on UnauthorizedError { message } }"
    if "UnauthorizedError" not in {one.name for one in getattr(_named(field.type), "types", ())}:
        asks = asks and " { __typename }"
    query = f"mutation{heads} {{ {mutation}{passed}{asks} }}"
    allowed = {who: _is_allowed(front.post(query, who, **given)) for who in (VIEWER, LAUNCHER, EDITOR, ADMIN)}
    needed = MUTATIONS[mutation]
    may = {who: Role[who.split()[1]] >= needed and mutation not in NOT_IN_OPEN_SOURCE for who in allowed}
    assert allowed == may
    nobody = front.post(query, "", **given)
    assert nobody == {"error": "log in first"}


def _named(kind: Any) -> Any:
    while hasattr(kind, "of_type"):
        kind = kind.of_type
    return kind


def _is_allowed(answer: Any) -> bool:
    """Whether it was not refused; then it may have failed, as most of what is given does not exist."""
    text = str(answer)
    assert "Variable '$" not in text, text
    assert "Cannot query field" not in text, text
    return "UnauthorizedError" not in text and " may not " not in text


OWNED = {"path": ["primary", "owned"]}
_OF_OWNED = {**SELECTOR, "jobName": "__ASSET_JOB", "assetSelection": [OWNED]}
_EXECUTION = {"selector": _OF_OWNED, "executionMetadata": {"tags": [{"key": "dagster/partition", "value": "a"}]}}
_CHECK = {"assetKey": OWNED, "checkName": "none", "passed": True}
_REPORT = {"eventType": "ASSET_OBSERVATION", "assetKey": OWNED}
_BACKFILL = {"assetSelection": [OWNED], "partitionNames": ["a"]}
ABOUT_ASSETS: dict[str, dict[str, Any]] = {
    "launchRun": {"executionParams": _EXECUTION},
    "launchPipelineExecution": {"executionParams": _EXECUTION},
    "launchMultipleRuns": {"executionParamsList": [_EXECUTION]},
    "launchRunReexecution": {"reexecutionParams": {"parentRunId": "RUN", "strategy": "ALL_STEPS"}},
    "launchPipelineReexecution": {"reexecutionParams": {"parentRunId": "RUN", "strategy": "ALL_STEPS"}},
    "terminateRun": {"runId": "RUN"},
    "terminatePipelineExecution": {"runId": "RUN"},
    "terminateRuns": {"runIds": ["RUN"]},
    "launchPartitionBackfill": {"backfillParams": _BACKFILL},
    "cancelPartitionBackfill": {"backfillId": "BACKFILL"},
    "resumePartitionBackfill": {"backfillId": "BACKFILL"},
    "reexecutePartitionBackfill": {"reexecutionParams": {"parentRunId": "BACKFILL", "strategy": "ALL_STEPS"}},
    "reportRunlessAssetEvents": {"eventParams": _REPORT},
    "reportAssetCheckEvaluations": {"eventParams": _CHECK},
    "wipeAssets": {"assetPartitionRanges": [{"assetKey": OWNED}]},
    "deleteRun": {"runId": "RUN"},
    "deletePipelineRun": {"runId": "RUN"},
}
"""The mutations that are about assets, or about runs and backfills of them."""


@pytest.fixture(scope="module")
def made(front: Front) -> dict[str, str]:
    """A run and a backfill of the owner."""
    query = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
      ... on LaunchBackfillSuccess { backfillId } } }"""
    backfill = front.post(query, OWNER, p=_BACKFILL)["data"]["launchPartitionBackfill"]["backfillId"]
    return {"RUN": launch(front, OWNER, "owned")["run"]["runId"], "BACKFILL": backfill}


@pytest.mark.parametrize("mutation", ABOUT_ASSETS)
def test_what_belongs_to_somebody(front: Front, made: dict[str, str], mutation: str) -> None:
    schema = create_schema().graphql_schema
    assert schema.mutation_type is not None
    field = schema.mutation_type.fields[mutation]
    given = _filled(ABOUT_ASSETS[mutation], made)
    heads = ", ".join(f"${name}: {field.args[name].type}" for name in given)
    passed = ", ".join(f"{name}: ${name}" for name in given)
    query = f"mutation({heads}) {{ {mutation}({passed}) {{ __typename }} }}"
    owners = MUTATIONS[mutation] is not Role.ADMIN
    expected = {VIEWER: False, LAUNCHER: False, EDITOR: False, OWNER: owners, MEMBER: owners, ADMIN: True}
    assert {who: _is_allowed(front.post(query, who, **given)) for who in expected} == expected


def _filled(value: Any, made: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(one, made) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, made) for one in value]
    return made.get(value, value) if isinstance(value, str) else value
