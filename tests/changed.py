"""``make test-changed``: the tests of those files that a change can reach, by what they import.

What is loaded by name is in ``LOADED``. Programs of the tests' own start from ``tests/processes.py``, which imports the
command, so what runs in them counts too; tools that watch what a test executes do not see it. What the fixtures of all
tests import does not count: everything would reach everything.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
FOLDERS = ("falcon_assets", "examples", "benchmarks", "docs", "tests")
LOADED = {
    "falcon_assets/surface/cli/main.py": "falcon_assets/surface/cli/**/*.py",
    "falcon_assets/surface/dagster/code_location.py": "falcon_assets/features/*/hooks.py",
    "falcon_assets/compute/executor.py": "falcon_assets/compute/engines/**/*.py",
    "tests/cli/test_console.py": "falcon_assets/surface/cli/**/*.py",
    "tests/orchestration/dagster_internals/test_imports.py": "falcon_assets/history/dagster_internals/*.py",
}
"""Files -> what they load or read without an import."""
READS_ALL = Path("tests/test_layers.py")
SHARED = {Path("tests", name) for name in ("conftest.py", "servers.py", "operations/opening.py")}
"""A change of these reaches all tests."""
Graph = Mapping[Path, set[Path]]


def imports(root: Path) -> Graph:
    """Our own modules that each file imports or loads, by their paths in the checkout."""
    files = [path.relative_to(root) for folder in FOLDERS for path in (root / folder).rglob("*.py")]
    modules = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in files}
    return {
        path: {modules[name] for name in _imported(ast.parse((root / path).read_text())) if name in modules}
        | {loaded.relative_to(root) for loaded in root.glob(LOADED.get(path.as_posix(), "nothing"))}
        for path in files
    }


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def chosen(graph: Graph, changed: set[Path]) -> list[Path]:
    """The files of tests that these changes reach; all of them where it cannot be known."""
    tests = {path: _needs(path, graph) for path in sorted(graph) if path.parts[0] == "tests" and _is_test(path)}
    pages = {path for path in changed if path.suffix == ".md"}
    data = {path for path in changed - pages if path.suffix != ".py" and path.parts[0] == "tests"}
    gone = {path for path in changed if _is_test(path) and path not in tests}
    modules = changed - pages - data - gone
    if modules & SHARED or modules - set[Path]().union(*tests.values()):
        return list(tests)
    folders = {path.parent for path in data} | ({Path("tests/docs")} if pages - {Path("CHANGELOG.md")} else set())
    reads = {READS_ALL} if any(path.parts[0] == "falcon_assets" for path in modules) else set()
    return [path for path, needed in tests.items() if needed & modules or {path, *path.parents} & (folders | reads)]


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") and path.suffix == ".py"


def _needs(test: Path, graph: Graph) -> set[Path]:
    needed = {test, *(folder / "conftest.py" for folder in test.parents)} & graph.keys() - SHARED
    waiting = [*needed]
    while waiting:
        found = graph[waiting.pop()] - needed
        needed |= found
        waiting += found
    return needed


def changed_since(root: Path, revision: str) -> set[Path]:
    """What differs from where this branch left ``revision``: committed or not, new and removed files too."""
    listed = _git(root, "diff", "--name-only", "-z", "--no-renames", "--merge-base", revision)
    listed += _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return {Path(name) for name in listed.split("\0") if name}


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout


def main(revision: str) -> int:
    """Runs them, without those of ``make soak``; the exit code."""
    tests = chosen(imports(ROOT), changed_since(ROOT, revision))
    click.echo(f"{len(tests)} files of tests import what changed since {revision}")
    command = [sys.executable, "-m", "pytest", "-m", "not soak", *map(str, tests)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode if tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
