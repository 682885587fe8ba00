"""Who may do what in Dagster's GraphQL: its UI asks for the same permissions, and greys out what is refused.

Permissions, and the request context that is asked for them, are not documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Makes a request context for each request, which Dagster asks for permissions.
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext

# Their names, and how Dagster is told whether they are given.
from dagster._core.workspace.permissions import PermissionResult, Permissions

from falcon_assets.model.access import Principal, Role
from falcon_assets.planning.dagster_names import owner_name

PERMISSIONS: Mapping[str, Role] = {
    Permissions.LAUNCH_PIPELINE_EXECUTION: Role.LAUNCHER,
    Permissions.LAUNCH_PIPELINE_REEXECUTION: Role.LAUNCHER,
    Permissions.TERMINATE_PIPELINE_EXECUTION: Role.LAUNCHER,
    Permissions.LAUNCH_PARTITION_BACKFILL: Role.LAUNCHER,
    Permissions.CANCEL_PARTITION_BACKFILL: Role.LAUNCHER,
    Permissions.START_SCHEDULE: Role.EDITOR,
    Permissions.STOP_RUNNING_SCHEDULE: Role.EDITOR,
    Permissions.SCHEDULE_DRY_RUN: Role.EDITOR,
    Permissions.EDIT_SENSOR: Role.EDITOR,
    Permissions.SENSOR_DRY_RUN: Role.EDITOR,
    Permissions.RELOAD_REPOSITORY_LOCATION: Role.EDITOR,
    Permissions.RELOAD_WORKSPACE: Role.EDITOR,
    Permissions.REPORT_RUNLESS_ASSET_EVENTS: Role.EDITOR,
    Permissions.EDIT_DYNAMIC_PARTITIONS: Role.EDITOR,
    Permissions.TOGGLE_AUTO_MATERIALIZE: Role.EDITOR,
    Permissions.REFRESH_COMPONENT_STATE: Role.EDITOR,
    Permissions.EDIT_APP_MANAGED_COMPONENTS: Role.EDITOR,
    Permissions.UPDATE_SENSOR_CURSOR: Role.ADMIN,
    Permissions.DELETE_PIPELINE_RUN: Role.ADMIN,
    Permissions.WIPE_ASSETS: Role.ADMIN,
    Permissions.EDIT_CONCURRENCY_LIMIT: Role.ADMIN,
}
"""The least role for each; what is missing here is refused."""
OF_OWNERS = frozenset(
    {
        Permissions.LAUNCH_PIPELINE_EXECUTION,
        Permissions.LAUNCH_PIPELINE_REEXECUTION,
        Permissions.TERMINATE_PIPELINE_EXECUTION,
        Permissions.LAUNCH_PARTITION_BACKFILL,
        Permissions.CANCEL_PARTITION_BACKFILL,
        Permissions.REPORT_RUNLESS_ASSET_EVENTS,
    }
)
"""What owners of an asset may do with it, whatever their role is."""


class RequestContext(WorkspaceRequestContext):
    """A request of somebody, or of nobody: without a source, and where nothing has said who that is."""

    @property
    def principal(self) -> Principal | None:
        scope: Mapping[str, Any] = getattr(self.source, "scope", {})
        user = scope.get("user")
        return user if isinstance(user, Principal) else None

    @property
    def permissions(self) -> Mapping[str, PermissionResult]:
        return self._of_role(super().permissions)

    def permissions_for_location(self, *, location_name: str) -> Mapping[str, PermissionResult]:
        return self._of_role(super().permissions_for_location(location_name=location_name))

    def permissions_for_owner(self, *, owner: str) -> Mapping[str, PermissionResult]:
        who = self.principal
        own = who is not None and owner in map(owner_name, (who.name, *who.groups))
        allowed = super().permissions
        return {one: PermissionResult(own and allowed[one].enabled, None) for one in OF_OWNERS}

    def viewer_has_any_owner_definition_permissions(self) -> bool:
        return self.principal is not None

    def _of_role(self, allowed: Mapping[str, PermissionResult]) -> Mapping[str, PermissionResult]:
        """What the deployment forbids stays forbidden."""
        return {
            name: one if not one.enabled or may(self.principal, name) else PermissionResult(False, _why(name))
            for name, one in allowed.items()
        }


class ProcessContext(WorkspaceProcessContext):
    def create_request_context(self, source: object | None = None) -> RequestContext:
        return RequestContext(
            instance=self.instance,
            current_workspace=self.get_current_workspace(),
            process_context=self,
            version=self.version,
            source=source,
            read_only=self.read_only,
        )


def may(who: Principal | None, permission: str) -> bool:
    """Whether the role of ``who`` is enough for it, whatever it is about."""
    needed = PERMISSIONS.get(permission)
    return who is not None and needed is not None and (who.is_superuser or who.role >= needed)


def _why(permission: str) -> str:
    needed = PERMISSIONS.get(permission)
    return f"This needs the role {needed.name.lower()}" if needed else "This is not allowed"
