"""The layers of the package: imports run downward only, and the lower layers know nothing of Dagster or Spark."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

import falcon_assets
from tests.dagster_boundary import touches

PACKAGE = Path(falcon_assets.__file__).parent
LAYERS = [
    "base",
    "errors",
    "hooks",
    "model",
    "planning",
    "shared_clock",
    "settings",
    "catalog",
    "history",
    "storage",
    "compute",
    "entities",
    "operations",
    "instances",
    "features",
    "doctor",
    "dagster_instance",
    "orchestration",
    "surface",
    "api",
    "first_entities",
    "component",
    "definitions",
]
"""Lowest first."""
UPWARD = {
    ("base", "errors"): "what is wrong is said with the help of base.texts, and said by the others",
    ("hooks", "history"): "hooks name the types of what is handed over",
    ("hooks", "catalog"): "likewise",
    ("hooks", "model"): "likewise",
    ("hooks", "planning"): "likewise",
    ("hooks", "settings"): "likewise",
}
"""Where something below names what is above it: the folders, and why."""
BETWEEN_FEATURES = {
    "colos": {"entities"},
    "flows": {"entities"},
    "metrics": {"landing"},
    "openlineage": {"lineage"},
    "replay": {"lineage"},
    "templates": {"entities"},
    "transfers": {"datasources"},
    "triage": {"landing"},
}
"""Which features know which others."""
INSIDE = PACKAGE / "history" / "dagster_internals"
PARTS = {
    "catalog": ["yaml_files", ""],
    "compute": ["executor", "spark", "arrow", "engines", "spark_executor"],
    "compute/engines": ["computing", ""],
    "compute/spark": ["", "jvm", "capture", "endpoints", "connect_server", "provisioned", "sessions", "data"],
    "history": [
        "dagster_internals",
        "mapping",
        "events",
        "tables",
        "database",
        "folding",
        "migrations",
        "",
        "platform",
    ],
    "instances": ["rules", "store", "outbox", "runs", "coordination", "views", "operations", ""],
    "storage": ["files", "", "instances", "tables", "feed_store", "copying", "kinds", "landing", "eviction"],
    "surface": ["", "dagster", "foreground", "jobs", "rest", "pages", "front", "cli"],
}
"""The parts of the large layers, lowest first; "" are the modules that are in no part."""
BANNED = {
    "dagster": {"base", "errors", "model", "planning", "shared_clock", "settings", "catalog", "storage", "compute"},
    "pyspark": {"base", "errors", "model", "planning", "shared_clock", "settings", "catalog", "storage"},
    "fsspec": {"base", "errors", "model", "planning", "shared_clock", "settings"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def imported(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def layer(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def folder(name: str) -> str:
    """Of a module, as ``instances/views``; of one that is in no folder of its layer, the layer."""
    steps = name.split(".")[1:3]
    return "/".join(steps) if (PACKAGE / "/".join(steps)).is_dir() else steps[0]


def found_in(modules: Iterable[Path], find: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    """Collects what is wrong, by module."""
    found = {str(module.relative_to(PACKAGE)): sorted(find(module)) for module in modules}
    assert found, "no modules were looked at"
    return {name: wrong for name, wrong in found.items() if wrong}


def upward(module: Path) -> list[str]:
    here = ".".join(["falcon_assets", *module.relative_to(PACKAGE).with_suffix("").parts])
    return [
        name
        for name in imported(module)
        if name.startswith("falcon_assets.")
        and LAYERS.index(name.split(".")[1]) > LAYERS.index(layer(module))
        and not {(x, y) for x in (folder(here), layer(module)) for y in (folder(name), name.split(".")[1])} & {*UPWARD}
    ]


def banned(module: Path) -> list[str]:
    others = {name.split(".")[0] for name in imported(module)}
    return [name for name in others if name == "examples" or layer(module) in BANNED.get(name, ())]


def test_imports_run_downward() -> None:
    modules = [module for module in MODULES if module != PACKAGE / "__init__.py"]
    assert found_in(modules, upward) == {}
    assert found_in(modules, banned) == {}


def test_no_exception_is_left_over() -> None:
    def known(inside: str) -> set[str]:
        files = [*(PACKAGE / inside).rglob("*.py"), *PACKAGE.glob(f"{inside}.py")]
        return {step for file in files for name in imported(file) for step in (folder(name), *name.split(".")[1:2])}

    assert [pair for pair in UPWARD if pair[1] not in known(pair[0])] == []
    used = {one: {name.removeprefix("features/") for name in known(f"features/{one}")} for one in BETWEEN_FEATURES}
    assert [(one, other) for one, others in BETWEEN_FEATURES.items() for other in others - used[one]] == []


def test_features_know_few_others() -> None:
    def unknown(module: Path) -> set[str]:
        here = module.relative_to(PACKAGE / "features").parts[0]
        names = {name.split(".")[2] for name in imported(module) if name.startswith("falcon_assets.features.")}
        return names - {here} - BETWEEN_FEATURES.get(here, set())

    modules = [*(PACKAGE / "features").rglob("*.py")]
    assert found_in((module for module in modules if module != PACKAGE / "features" / "__init__.py"), unknown) == {}


@pytest.mark.parametrize("inside", PARTS)
def test_imports_within_a_layer_run_downward(inside: str) -> None:
    parts, prefix = PARTS[inside], f"falcon_assets.{inside.replace('/', '.')}."

    def part(steps: Sequence[str]) -> int:
        ours = [name for name in parts if name.split("/") == list(steps[: name.count("/") + 1])]
        return parts.index(max(ours, key=len, default=""))

    def higher(module: Path) -> list[str]:
        names = [name.removeprefix(prefix) for name in imported(module) if name.startswith(prefix)]
        here = module.relative_to(PACKAGE / inside).with_suffix("").parts
        return [name for name in names if part(name.split(".")) > part(here)]

    modules = [module for module in (PACKAGE / inside).rglob("*.py") if module.name != "__init__.py"]
    assert found_in(modules, higher) == {}


def kinds_named(text: str) -> list[str]:
    """What in a program is of one kind of storage, or asks which one a store is."""
    nodes = list(ast.walk(ast.parse(text)))
    asked = {node.attr for node in nodes if isinstance(node, ast.Attribute)} & {"is_local"}
    names = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    of_one = ("fsspec.implementations", "falcon_assets.storage.kinds.renaming", "falcon_assets.storage.kinds.objects")
    return sorted(
        asked
        | names & {"LocalFiles", "RemoteFiles", "ObjectFiles"}
        | {name for name in modules if name.startswith(of_one)}
    )


def test_nothing_outside_asks_which_kind_a_storage_is() -> None:
    inside = {PACKAGE / "storage" / "kinds", PACKAGE / "storage" / "files"}
    outside = [module for module in MODULES if not inside & set(module.parents)]
    assert found_in(outside, lambda module: kinds_named(module.read_text())) == {}


@pytest.mark.parametrize(
    "line",
    [
        "from fsspec.implementations.local import LocalFileSystem",
        "import fsspec.implementations.local",
        "from falcon_assets.storage.files.local_files import LocalFiles",
        "from falcon_assets.storage.kinds.renaming.removal import RenameRemoval",
        "if store.is_local: pass",
    ],
)
def test_the_guard_of_kinds_sees(line: str) -> None:
    assert kinds_named(line) != []


def test_the_inside_of_dagster_is_touched_in_one_package() -> None:
    outside = [module for module in MODULES if INSIDE not in module.parents]
    assert found_in(outside, lambda module: touches(module.read_text())) == {}


@pytest.mark.parametrize(
    "line",
    [
        "import dagster._core.events",
        "from dagster._core.events import AssetObservationData",
        "from dagster_shared.serdes import deserialize_value",
        "from dagster_postgres.utils import DagsterPostgresException",
        "import importlib; importlib.import_module('dagster._core.events')",
        "MODULES = ('dagster_postgres.utils',)",
        "dg._check",
        "dg.DagsterInstance.get()._storage",
        "getattr(dg.DagsterInstance.get(), '_storage')",
        "instance.event_log_storage",
        "context.instance.report_run_failed(run)",
        "class Launcher(dg.DefaultRunLauncher):\n    def which(self): return self._instance",
        "class Launcher(dg.DefaultRunLauncher):\n    def __init__(self): self._run_ids = set()",
        "class Resource(LazyPySparkResource):\n    def _init_session(self): pass",
        "text('SELECT id FROM event_logs')",
        "text('DELETE FROM runs WHERE true')",
        "table('runs', column('run_id'))",
        "NAME = 'secondary_indexes'",
        "TAG = '.dagster/mine'",
        "TAG = 'dagster/run_key'",
        "f'dagster/{name}'",
    ],
)
def test_the_guard_sees(line: str) -> None:
    assert touches(f"import dagster as dg\nfrom dagster_pyspark import LazyPySparkResource\n{line}") != []


def test_commands_leave_opening_and_wiring_to_operations() -> None:
    wiring = {"open_instance", "open_ledger", "ledger_engine", "set_clock", "database_url", "load_entities"}
    found = {
        (module.name, alias.name)
        for module in (PACKAGE / "surface" / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if alias.name in wiring or getattr(node, "module", alias.name).split(".")[0] in ("dagster", "sqlalchemy")
    }
    assert found == set()


def test_no_two_classes_have_one_name() -> None:
    def classes(module: Path) -> set[str]:
        return {node.name for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.ClassDef)}

    counts = Counter(name for module in MODULES for name in classes(module))
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_environment_is_read_in_one_module() -> None:
    users = [path for path in MODULES if "os.environ" in path.read_text() or "os.getenv" in path.read_text()]
    # PySpark keeps its mode in a variable of the process, which has to be taken back, hands all of them to its JVM, and
    # has the settings of programs in variables.
    own = [
        PACKAGE / name
        for name in (
            "compute/engines/computing/connect_client.py",
            "compute/spark/endpoints/connect.py",
            "compute/spark/jvm.py",
        )
    ]
    assert users == sorted([PACKAGE / "settings.py", *own])


def test_model_and_planning_bring_neither_dagster_nor_spark() -> None:
    modules = [
        f"falcon_assets.{name}.{module.name}"
        for name in ("model", "planning")
        for module in pkgutil.walk_packages([str(PACKAGE / name)], prefix="")
    ]
    program = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n" + (
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'dagster', 'pyspark', 'fsspec', 'sqlalchemy'}))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
