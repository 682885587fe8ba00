"""What the definitions of a workload keep to themselves, so that no log of it shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from falcon_assets.model.cluster import EnvironmentValue
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.workloads.workload import Workload
from falcon_assets.spark.endpoints.confs import is_secret

_TOKEN = re.compile(r";token=([^;]+)")


def known_secrets(installation: Installation, workload: Workload) -> Iterator[str]:
    """Secret properties, options of stores, and the token of a Spark Connect server."""
    clusters = [installation.entities.cluster(one) for one in sorted({workload.cluster, workload.reads_on})]
    for entity in (workload.entity, *clusters):
        yield from (value for key, value in entity.properties.items() if is_secret(key))
    for cluster in clusters:
        yield from _values(cluster.storage_options, installation.settings.environ)
        if cluster.interfaces.registry:
            yield from _values(cluster.interfaces.registry.storage_options, installation.settings.environ)
        if cluster.interfaces.execute:
            yield from _TOKEN.findall(cluster.interfaces.execute.endpoint)


def _values(option: Any, environ: Mapping[str, str]) -> Iterator[str]:
    if isinstance(option, Mapping):
        for inner in option.values():
            yield from _values(inner, environ)
    elif isinstance(option, EnvironmentValue):
        yield environ.get(option.env, "")
    elif isinstance(option, str):
        yield option
