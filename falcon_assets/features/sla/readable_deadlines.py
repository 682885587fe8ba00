"""Deadlines of the entities of this colo that the user may read."""

from __future__ import annotations

from falcon_assets.features.sla.evaluation import SlaEvaluation
from falcon_assets.features.sla.rules import Deadline
from falcon_assets.model.access import may_read
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation


def readable_deadlines(installation: Installation) -> list[Deadline]:
    entities, who, now = installation.entities, acting(installation.settings), installation.settings.now
    declared: list[Feed | Process] = [*entities.feeds.values(), *entities.processes.values()]
    readable = {(one.kind, one.name) for one in declared if may_read(one.acl, who)}
    found = [one for name in entities.clusters for one in SlaEvaluation(entities, name, now).deadlines]
    return [one for one in found if one.declared_by in readable]
