"""What the definitions of a workload keep to themselves, so that no log of it shows it."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.model.secret_values import secret_properties, secrets_of
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.workloads.workload import Workload


def known_secrets(installation: Installation, workload: Workload) -> Iterator[str]:
    """Secret properties, options of stores, and the token of a Spark Connect server."""
    clusters = [installation.entities.cluster(one) for one in sorted({workload.cluster, workload.reads_on})]
    yield from secret_properties(workload.entity.properties)
    for cluster in clusters:
        yield from secrets_of(cluster, installation.settings.environ)
