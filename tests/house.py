"""Checks of how the package is cut, a part of ``make lint``: ``python -m tests.house``.

No file is too long, or so small that it belongs to the only one in its folder that imports it; no two classes are the
same record twice. What is an exception has its reason here, and one that is none any more fails.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "falcon_assets"
LONGEST, SMALLEST, FIELDS = 400, 60, 8
LAZY = "its importer loads it only where it is needed"
_PART = "each part that doctor looks at has a file"
_TYPE = "types of datasources have the same files"
SMALL = {
    "catalog/checks/executors.py": "each kind of checks has a file",
    "catalog/checks/flows.py": "each kind of checks has a file",
    "catalog/checking.py": LAZY,
    "compute/engines/computing/connect_client.py": "it is a program of its own",
    "doctor/datasources.py": _PART,
    "doctor/webserver.py": _PART,
    "features/compaction/checks.py": LAZY,
    "features/datasources/types/mysql/selected_rows.py": _TYPE,
    "features/datasources/types/postgresql/ranges.py": "with its importer it would be too long",
    "features/executors/health_events.py": LAZY,
    "features/executors/sensors.py": LAZY,
    "features/flows/submitted.py": LAZY,
    "features/openlineage/sending.py": LAZY,
    "features/transfers/merging.py": LAZY,
    "features/transfers/source_columns.py": "it compares columns, whatever reads them",
    "features/transfers/work.py": "a transfer is a process for the core only here",
    "history/tables/colos.py": "the tables of a feature have a file",
    "history/tables/executors.py": "the tables of a feature have a file",
    "features/rollups/sensors.py": LAZY,
    "history/platform/run_worker.py": "it runs in another process, which loads nothing else of its importer",
    "instances/runs/executor_away.py": "what it knows of runs is asked by nothing else",
    "planning/flows/gaps.py": "sentences, apart from the search",
    "storage/kinds/tables/copied_files.py": "with its importer it would be too long",
}
_DECLARED = "what people declare of both has the same names"
_VERDICT = "one is about a version, the other about what became none"
_TRANSFER = "one is recorded, one is what the ledger knows, one is what lineage shows"
ALIKE = {
    ("CheckedEntities", "EntityStore"): "the first is kept in a file, the second knows clusters that are left out",
    ("Cluster", "Datasource"): _DECLARED,
    ("Cluster", "Feed"): _DECLARED,
    ("Cluster", "Flow"): _DECLARED,
    ("Cluster", "Process"): _DECLARED,
    ("DatasetEdge", "InstanceDelivered"): _TRANSFER,
    ("DatasetEdge", "KnownDelivery"): _TRANSFER,
    ("InstanceDelivered", "KnownDelivery"): _TRANSFER,
    ("Feed", "Flow"): _DECLARED,
    ("Feed", "Process"): _DECLARED,
    ("Flow", "Process"): _DECLARED,
    ("HeldOutput", "VerdictRow"): _VERDICT,
    ("InstanceChecked", "OutputHeld"): _VERDICT,
    ("InstanceInfo", "JobState"): "the first is an instance as lists show it, the second a hop of a flow",
}


def main() -> int:
    """The number of complaints, each of which is printed."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    found = [*_long(trees), *_small(trees), *_alike(trees)]
    for line in found:
        sys.stdout.write(f"{line}\n")
    return len(found)


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _long(trees: dict[Path, ast.Module]) -> Iterator[str]:
    for path in trees:
        if (number := _lines(path)) > LONGEST:
            yield f"{path}: {number} lines, {LONGEST} at most: it is more than one concept"


def _small(trees: dict[Path, ast.Module]) -> Iterator[str]:
    modules = {_name(path): path for path in trees}
    importers = defaultdict[str, set[str]](set)
    for name, path in modules.items():
        for node in ast.walk(trees[path]):
            if isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                for one in whole & modules.keys() or {node.module}:
                    importers[one].add(name)
    small = {
        str(path.relative_to(PACKAGE))
        for name, path in modules.items()
        if path.name != "__init__.py" and _lines(path) < SMALLEST
        if len(importers[name]) == 1 and modules[next(iter(importers[name]))].parent == path.parent
    }
    for one in sorted(small - SMALL.keys()):
        yield f"{PACKAGE / one}: less than {SMALLEST} lines, and one importer, in its folder: merge them"
    for one in sorted(SMALL.keys() - small):
        yield f"{__file__}: {one} is no exception any more: take it out of SMALL"


def _name(path: Path) -> str:
    steps = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(steps[:-1] if steps[-1] == "__init__" else steps)


def _alike(trees: dict[Path, ast.Module]) -> Iterator[str]:
    fields = {
        node.name: {part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and _is_field(part.target)}
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    pairs = {
        (one, other): len(fields[one] & fields[other])
        for one, other in combinations(sorted(name for name, own in fields.items() if len(own) >= FIELDS), 2)
    }
    alike = {pair: number for pair, number in pairs.items() if number >= FIELDS}
    for (one, other), number in alike.items():
        if (one, other) not in ALIKE:
            yield f"{one} and {other} share {number} fields: they are one record"
    for pair in ALIKE.keys() - alike.keys():
        yield f"{__file__}: {' and '.join(pair)} are no exception any more: take them out of ALIKE"


def _is_field(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and not target.id.startswith("_")


if __name__ == "__main__":
    sys.exit(min(main(), 1))
