"""Waiting instances whose reason is known: the data of a store that does not answer is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.history.queries import Name
from falcon_assets.instances.rules.situation import Decision
from falcon_assets.instances.rules.waiting import InputsMissing
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class WaitingWorkload:
    """Waiting instances of a workload; ``further``: number of others, whose reasons were not determined."""

    process: str
    cluster: str
    instances: tuple[tuple[datetime, Reason], ...]
    further: int = 0


def known_waits(
    workloads: Sequence[Workload], decisions: Mapping[tuple[str, str], Decision], unread: Set[Name]
) -> tuple[WaitingWorkload, ...]:
    """Returns the waiting instances with known reasons, in the order of the decisions.

    Left out are those that lack ``unread`` data, and those that lack their outputs: the error of the store explains
    them, and "waits for" would make users search for data that may exist.
    """
    unknown = set(unread)
    blind = {(one.name, one.cluster) for one in workloads} - decisions.keys()
    while True:
        unknown |= {
            (one.cluster, out.feed) for one in workloads if (one.name, one.cluster) in blind for out in one.outputs
        }
        found = {
            key
            for one in workloads
            if (key := (one.name, one.cluster)) in decisions and _unknown(one, decisions[key], unknown)
        }
        if found <= blind:
            break
        blind |= found
    reads_on = {(one.name, one.cluster): one.reads_on for one in workloads}
    waiting = []
    for (name, cluster), decision in decisions.items():
        where = reads_on[name, cluster]
        known = tuple(one for one in decision.waiting.items() if not _lacks_unknown(one[1], where, unknown))
        is_whole = len(known) == len(decision.waiting)
        if known or (is_whole and decision.further):
            waiting.append(WaitingWorkload(name, cluster, known, decision.further if is_whole else 0))
    return tuple(waiting)


def _unknown(workload: Workload, decision: Decision, unknown: Set[Name]) -> bool:
    return any(_lacks_unknown(reason, workload.reads_on, unknown) for reason in decision.waiting.values())


def _lacks_unknown(reason: Reason, reads_on: str, unknown: Set[Name]) -> bool:
    return isinstance(reason, InputsMissing) and any((reads_on, one.feed) in unknown for one in reason.inputs)
