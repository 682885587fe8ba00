"""The Python API: what the commands of ``falcon`` do, for programs.

Each function takes an :class:`Installation`, and answers with what the command prints. What is refused is a
:class:`FalconError` whose text is one sentence. Who acts, and who is written down, is the user of the operating system,
or the ``actor`` of a request where FALCON_PROXY_USERS lets that user speak for others.

Every operation is here as the class that declares it, too: ``RerunInstances(name="daily", start=noon).run(falcon)``
does what ``falcon instance rerun`` does. ``dir()`` of this module lists all.
"""

from falcon_assets.doctor.admin import installation_status, installed_versions
from falcon_assets.errors import DeniedError, FalconError
from falcon_assets.features.entities.changing import delete, submit, submit_and_schedule, update
from falcon_assets.features.entities.dependencies import entity_dependencies
from falcon_assets.features.entities.listing import list_entities, show_entity
from falcon_assets.features.entities.lookup import lookup
from falcon_assets.features.entities.results import Request
from falcon_assets.features.entities.status import resume_entities, schedule_entities, suspend_entities
from falcon_assets.features.entities.summary import summarize_entities
from falcon_assets.features.entities.versions import entity_diff, entity_history, restore_entity
from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.lineage.asking import (
    lineage_diff,
    lineage_impact,
    lineage_path,
    show_lineage,
    with_metadata,
)
from falcon_assets.features.lineage.lifecycle_operations import expire_lineage, prune_plan, set_lifecycle
from falcon_assets.features.lineage.searching import search_lineage
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.features.openlineage.operations import export_openlineage
from falcon_assets.features.replay.operations import replay_instance
from falcon_assets.features.triage.operations import triage
from falcon_assets.features.versions.operations import instance_versions, restore_instance
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.operations.stopping import kill_instances, resume_instances, suspend_instances
from falcon_assets.instances.operations.waiting import wait_for_instance
from falcon_assets.instances.views.details import instance_details
from falcon_assets.instances.views.listing import instance_status, list_instances, summarize_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.audit import PlainRequest, list_audit
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.operation import Operation
from falcon_assets.operations.paging import Query
from falcon_assets.surface.registry import registry

__all__ = [
    "DeniedError",
    "FalconError",
    "Installation",
    "InstanceQuery",
    "InstanceRequest",
    "PlainRequest",
    "Query",
    "Request",
    "RerunOptions",
    "VersionQuery",
    "collect_instances",
    "delete",
    "entity_dependencies",
    "entity_diff",
    "entity_history",
    "expire_lineage",
    "export_openlineage",
    "installation_status",
    "installed_versions",
    "instance_details",
    "instance_status",
    "instance_versions",
    "kill_instances",
    "lineage_diff",
    "lineage_impact",
    "lineage_path",
    "list_audit",
    "list_entities",
    "list_instances",
    "lookup",
    "open_installation",
    "parse_instant",
    "prune_plan",
    "replay_instance",
    "rerun_instances",
    "restore_entity",
    "restore_instance",
    "resume_entities",
    "resume_instances",
    "schedule_entities",
    "search_lineage",
    "set_lifecycle",
    "show_entity",
    "show_lineage",
    "submit",
    "submit_and_schedule",
    "summarize_entities",
    "summarize_instances",
    "suspend_entities",
    "suspend_instances",
    "triage",
    "update",
    "wait_for_instance",
    "with_metadata",
]


def __getattr__(name: str) -> type[Operation]:
    """Imports the operation of that name."""
    for one in registry().values():
        if one.name == name:
            return one.load()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(one.name for one in registry().values())]
