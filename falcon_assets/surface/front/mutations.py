"""Who may change what by Dagster's GraphQL, and that it is written down.

Dagster asks for its own permissions as well; this knows the ``acl`` of entities, and what Dagster asks nobody about.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import DeniedError
from falcon_assets.history.dagster_internals.concerned_assets import concerned_assets
from falcon_assets.history.dagster_internals.permissions import RequestContext
from falcon_assets.history.dagster_internals.stamps import signing_key, stamp_of, stamping
from falcon_assets.model.access import Role
from falcon_assets.model.shared import Acl
from falcon_assets.operations.acting import Owned, require_change
from falcon_assets.operations.audit import PlainRequest, audited
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.surface.served import ServedInstallation

MUTATIONS: Mapping[str, Role] = {
    **dict.fromkeys(
        (
            *("launchPipelineExecution", "launchRun", "launchMultipleRuns", "launchPipelineReexecution"),
            *("launchRunReexecution", "terminatePipelineExecution", "terminateRun", "terminateRuns"),
            *("launchPartitionBackfill", "resumePartitionBackfill", "reexecutePartitionBackfill"),
            "cancelPartitionBackfill",
        ),
        Role.LAUNCHER,
    ),
    **dict.fromkeys(
        (
            *("startSchedule", "stopRunningSchedule", "resetSchedule", "scheduleDryRun", "startSensor", "stopSensor"),
            *("resetSensor", "sensorDryRun", "reloadRepositoryLocation", "reloadWorkspace"),
            *("shutdownRepositoryLocation", "reportRunlessAssetEvents", "reportAssetCheckEvaluations"),
            *("addDynamicPartition", "deleteDynamicPartitions", "setAppManagedComponent"),
            *("deleteAppManagedComponent", "refreshComponentState", "setAutoMaterializePaused", "setNuxSeen"),
        ),
        Role.EDITOR,
    ),
    **dict.fromkeys(
        (
            *("setSensorCursor", "deletePipelineRun", "deleteRun", "wipeAssets", "setConcurrencyLimit"),
            *("deleteConcurrencyLimit", "freeConcurrencySlots", "freeConcurrencySlotsForRun"),
        ),
        Role.ADMIN,
    ),
    "logTelemetry": Role.VIEWER,
}
"""The least role for each, where no ``acl`` gives it to somebody; what is missing here is refused."""
ONLY_ADMINS = Role.ADMIN
_NOT_AUDITED = frozenset({"logTelemetry"})
_FAILURES = ("Error", "Invalid", "Conflict", "Failure")


@dataclass(frozen=True)
class _Asset:
    """An asset that is none of our entities'."""

    name: str
    kind: str = "asset"
    acl: Acl | None = None


@dataclass(frozen=True)
class GuardedMutations:
    """Asked by Dagster's webserver about each mutation."""

    served: ServedInstallation

    async def __call__(
        self,
        context: RequestContext,
        mutation: str,
        arguments: Mapping[str, Any],
        go_on: Callable[[], Awaitable[str]],
    ) -> None:
        """Performs it, and raises DeniedError if that is refused."""
        who = context.principal
        if who is None:
            raise DeniedError(f"nobody is logged in who could {mutation}")
        with (
            self.served.opened() as installation,
            requests_from("graphql", principal=who),
            audited(installation, mutation, PlainRequest(), changes=mutation not in _NOT_AUDITED) as audit,
        ):
            role = MUTATIONS.get(mutation)
            if role is None:
                raise DeniedError(f"{mutation} is not known here: nobody may request it")
            keys = sorted(concerned_assets(context, arguments))
            concerned = list(_owned(keys, installation.all_entities)) if keys else []
            audit.about((one.kind, one.name) for one in concerned)
            # Only those in a role decide about what owners cannot take back.
            require_change(who, mutation, [] if role is ONLY_ADMINS else concerned, role)
            with stamping(stamp_of(who, signing_key(context.instance, make=True))):
                result = await go_on()
            if result == "UnauthorizedError":
                audit.refused("denied", "Dagster's permissions refuse it")
            elif result.endswith(_FAILURES):
                audit.refused("failed", result)
            elif mutation not in _NOT_AUDITED:
                audit.result(changed=True)


def _owned(keys: Iterable[tuple[str, ...]], entities: EntityStore) -> Iterator[Owned]:
    """The process that makes a feed decides about it, else the feed itself."""
    for key in keys:
        cluster, name = key if len(key) == 2 else ("", "")
        makers = [one.name for one in entities.producers(name, cluster)] if name in entities.feeds else [name]
        processes: list[Owned] = [entities.processes[one] for one in makers if one in entities.processes]
        yield from processes or [entities.feeds.get(name) or _Asset("/".join(key))]
