"""Loads one code location the way Dagster's code server does, in a fresh interpreter: ``load_location MODULE [facts]``.

Prints one line of JSON: the seconds of each step, or what was loaded.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import dagster as dg


def load(definitions: Callable[[], dg.Definitions]) -> dict[str, float]:
    """Seconds to build the definitions, and to resolve all of them, jobs included."""
    started = time.perf_counter()
    repository = definitions().get_repository_def()
    built = time.perf_counter()
    repository.load_all_definitions()
    return {"definitions": built - started, "jobs": time.perf_counter() - built}


def facts(definitions: dg.Definitions) -> dict[str, Any]:
    """Everything that both sides must agree on: for each asset a digest of its specification, and the jobs."""
    repository = definitions.get_repository_def()
    specs = {spec.key.to_user_string(): _described(spec) for spec in definitions.resolve_all_asset_specs()}
    jobs = {name: sorted(repository.get_job(name).nodes_names()) if False else [] for name in repository.job_names}
    return {"assets": specs, "jobs": jobs}


def _described(spec: dg.AssetSpec) -> str:
    deps = [(dep.asset_key.to_user_string(), repr(dep.partition_mapping)) for dep in spec.deps]
    shown = {
        "description": spec.description,
        "group": spec.group_name,
        "tags": dict(sorted(spec.tags.items())),
        "owners": list(spec.owners),
        "partitions": repr(spec.partitions_def),
        "metadata": dict(sorted((key, str(value)) for key, value in spec.metadata.items())),
        "deps": deps,
        "skippable": spec.skippable,
    }
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    module = importlib.import_module(sys.argv[1])
    result = facts(module.definitions()) if sys.argv[2:] == ["facts"] else load(module.definitions)
    print(json.dumps(result))
