"""The list of executors."""

from __future__ import annotations

from falcon_assets.features.executors.listing import ListedExecutor, listed_executors
from falcon_assets.model.access import may_read
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import Fields, ListOperation, Page, require_values, select
from falcon_assets.planning.executor_health import Health

FIELDS: Fields[ListedExecutor] = {
    "cluster": lambda one: [one.cluster],
    "executor": lambda one: [one.executor],
    "health": lambda one: [one.health.value],
    "location": lambda one: [one.location],
    "queue": lambda one: [one.queue] if one.queue else [],
}


class ListExecutors(ListOperation):
    """List the executors of clusters, with their health and load.

    Executors that a cluster declares are asked every 15 seconds by a sensor of Dagster, and by falcon run; one that
    does not answer, less and less often, every 5 minutes at last. UNKNOWN: it was not asked yet. SUSPECT: it did not
    answer once. OFFLINE: it did not answer several times.

    Jobs and cores are those of runs, of the most that the quota allows; spark is what Spark says: free cores of all,
    and applications that wait for cores.
    """

    command = "executor list"
    fields = FIELDS

    def run(self, installation: Installation) -> Page[ListedExecutor]:
        require_values(self.query.filters, {"health": [one.value for one in Health]})
        who, store = acting(installation.settings), installation.entities
        readable = [one for one in store.clusters.values() if may_read(one.acl, who)]
        with installation.tables.connect() as connection:
            found = [one for cluster in readable for one in listed_executors(connection, store, cluster)]
        return select(found, self.query, FIELDS)
