"""Loads one code location in a fresh interpreter the way Dagster's code server does, jobs included.

``python -m benchmarks.load_location MODULE`` prints one line of JSON, the processor seconds of each step; with
``--assets`` what was loaded instead, so that two locations can be compared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from typing import Any

import dagster as dg

BY_HAND, DECLARED = "benchmarks.location_by_hand", "falcon_assets.definitions"
_IMPORTS = {
    BY_HAND: ("dagster_pyspark",),
    DECLARED: ("falcon_assets.catalog.store", "falcon_assets.surface.dagster.code_location", "falcon_assets.settings"),
}
"""What each module imports; before it, so that its own time is that of the definitions."""


def load(module: str) -> dict[str, float]:
    """Processor seconds of interpreter and imports, of the definitions of assets and jobs, of resolving every job.

    Processor time, because one thread does it all: it is the same whatever else the machine does.
    """
    for name in _IMPORTS[module]:
        importlib.import_module(name)
    imported = time.process_time()
    repository = importlib.import_module(module).defs.get_repository_def()
    defined = time.process_time()
    repository.load_all_definitions()
    return {"imports": imported, "definitions": defined - imported, "jobs": time.process_time() - defined}


def loaded(definitions: dg.Definitions) -> dict[str, Any]:
    """Each asset as text, and the job names."""
    assets = {spec.key.to_user_string(): _described(spec) for spec in definitions.resolve_all_asset_specs()}
    return {"assets": assets, "jobs": sorted(definitions.get_repository_def().job_names)}


def _described(spec: dg.AssetSpec) -> str:
    shown = {
        "description": spec.description,
        "group": spec.group_name,
        "tags": dict(spec.tags),
        "owners": list(spec.owners),
        "partitions": repr(spec.partitions_def),
        "metadata": {key: str(value) for key, value in spec.metadata.items()},
        "deps": [f"{dep.asset_key.to_user_string()} {dep.partition_mapping}" for dep in spec.deps],
        "skippable": spec.skippable,
    }
    return json.dumps(shown, sort_keys=True)


def main() -> None:
    """Prints, and ends at once: a code server does not take its definitions down again either."""
    parser = argparse.ArgumentParser()
    parser.add_argument("module", choices=[BY_HAND, DECLARED])
    parser.add_argument("--assets", action="store_true")
    options = parser.parse_args()
    result = loaded(importlib.import_module(options.module).defs) if options.assets else load(options.module)
    print(json.dumps(result), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
