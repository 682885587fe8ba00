"""Finds what touches the inside of Dagster in a module's source, by whatever way."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeAlias

import dagster as dg
from dagster._annotations import is_public
from dagster._core.storage.event_log import SqlEventLogStorageMetadata
from dagster._core.storage.runs import RunStorageSqlMetadata
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata

_METADATA = (SqlEventLogStorageMetadata, RunStorageSqlMetadata, ScheduleStorageSqlMetadata)
_TABLES = sorted({"secondary_indexes", "instance_info", *(name for one in _METADATA for name in one.tables)})
_PLAIN = "|".join(_TABLES)
_SQL = re.compile(
    rf"\b(from|join|into|update|table|only)\s+\"?({_PLAIN})\b|'({_PLAIN})'::regclass"
    # These are no words of English.
    rf"|\b({'|'.join(name for name in _TABLES if '_' in name)})\b",
    re.IGNORECASE,
)
_TABLE_CALLS = {"Table", "TableClause", "table", "to_regclass"}
_MODULE = re.compile(r"\bdagster\.(_\w+|core)\b|\bdagster_(?!internals)[a-z]+\.\w")
_TAG = re.compile(r"\.?dagster/")
Names: TypeAlias = dict[str, tuple[str, str | None]]
"""What a module has from Dagster, or from our package for its inside: as what -> from which module, and what of it."""
DOCUMENTED_TAGS = {"dagster/data_version", "dagster/row_count", "dagster/column_schema", "dagster/column_lineage"}
"""Dagster's documentation tells users to write these."""


def touches(source: str) -> list[str]:
    """What touches the inside, as ``line: how``; nothing where only Dagster's promises are used."""
    tree = ast.parse(source)
    names = _imported_from_dagster(tree)
    docstrings = {id(text) for node in ast.walk(tree) for text in _docstring(node)}
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if id(node) not in docstrings:
            found += [(getattr(node, "lineno", 0), how) for how in _of_node(node, names)]
    return [f"{line}: {how}" for line, how in sorted(found)]


def _of_node(node: ast.AST, names: Names) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (f"imports {alias.name}" for alias in node.names if _is_inside(alias.name))
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            if _is_inside(node.module) or (_is_dagster(node.module) and alias.name.startswith("_")):
                yield f"imports {node.module}.{alias.name}"
    elif isinstance(node, ast.Attribute):
        yield from _of_attribute(node, names)
    elif isinstance(node, ast.Call):
        yield from _of_call(node, names)
    elif isinstance(node, ast.ClassDef):
        yield from _of_class(node, names)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _of_text(node.value)


def _of_attribute(node: ast.Attribute, names: Names) -> Iterator[str]:
    owner, name = ast.unparse(node.value), node.attr
    if owner.split(".")[0] in names and _is_private(name):
        yield f"uses {owner}.{name}"
    elif _is_instance(owner) and hasattr(dg.DagsterInstance, name):
        if not _is_promised(dg.DagsterInstance, name):
            yield f"uses DagsterInstance.{name}, which is not public"
    elif names and _is_private(name) and owner not in ("self", "cls", "super()", "atexit"):
        yield f"uses {owner}.{name}"


def _of_call(node: ast.Call, names: Names) -> Iterator[str]:
    called = ast.unparse(node.func).rpartition(".")[2]
    texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if called in _TABLE_CALLS and texts and texts[0] in _TABLES:
        yield f"names Dagster's table {texts[0]}"
    if called in ("getattr", "setattr", "hasattr", "attrgetter") and names:
        yield from (f"uses {text} by its name" for text in texts if _is_private(text))


def _of_class(node: ast.ClassDef, names: Names) -> Iterator[str]:
    """A class of Dagster's is a stranger's: no private name is its, and none is used that the class itself has not."""
    bases = [ast.unparse(base) for base in node.bases]
    if not any(base.split(".")[0] in names for base in bases):
        return
    own = {one.attr for one in ast.walk(node) if _is_of_self(one) and isinstance(one.ctx, ast.Store)}
    own |= {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    own |= {one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}
    theirs = set[str]().union(*(_private_names(_resolved(base, names)) for base in bases))
    used = {one.attr for one in ast.walk(node) if _is_of_self(one)} | own
    yield from (f"uses {node.name}.{name}, which is Dagster's" for name in sorted(used) if name in theirs)
    yield from (
        f"uses {node.name}.{name}, which it inherits" for name in sorted(used - own - theirs) if _is_private(name)
    )


def _of_text(text: str) -> Iterator[str]:
    if _SQL.search(text):
        yield f"names a table of Dagster's in {text!r}"
    if _MODULE.search(text):
        yield f"names a module of Dagster's in {text!r}"
    if _TAG.match(text) and text not in DOCUMENTED_TAGS:
        yield f"names a tag of Dagster's in {text!r}"


def _imported_from_dagster(tree: ast.AST) -> Names:
    found: Names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {
                one.asname or one.name.split(".")[0]: (one.name, None) for one in node.names if _is_dagster(one.name)
            }
        elif isinstance(node, ast.ImportFrom) and re.match(
            r"dagster|.*\.dagster_internals", module := node.module or ""
        ):
            found |= {one.asname or one.name: (module, one.name) for one in node.names}
    return found


def _resolved(base: str, names: Names) -> object:
    """The class of that name."""
    first, *rest = base.split("[", maxsplit=1)[0].split(".")
    if first not in names:
        return None
    module, name = names[first]
    found: object = importlib.import_module(module)
    for step in (*filter(None, [name]), *rest):
        found = getattr(found, step, None)
    return found


def _is_dagster(module: str) -> bool:
    return re.match(r"dagster(_\w+)?(\.|$)", module) is not None


def _is_inside(module: str) -> bool:
    return _is_dagster(module) and ("." in module or module == "dagster_shared")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"


def _is_instance(owner: str) -> bool:
    return owner.rpartition(".")[2].strip("_") == "instance"


def _is_promised(owner: type, name: str) -> bool:
    return bool(is_public(inspect.getattr_static(owner, name)))


def _private_names(base: object) -> set[str]:
    """What Dagster, and our package for its inside, call by a private name in a class and those above it."""
    above = [one for one in (base.__mro__ if isinstance(base, type) else ()) if "dagster" in one.__module__]
    found = set[str]()
    for one in above:
        found |= set(vars(one))
        with suppress(OSError):  # a NamedTuple made in a call has no source, and uses nothing
            found |= set(re.findall(r"self\.(_\w+)", inspect.getsource(one)))
    return {name for name in found if _is_private(name)}


def _docstring(node: ast.AST) -> Iterator[ast.AST]:
    """Texts that stand for themselves: docstrings, of attributes too."""
    body = getattr(node, "body", None)
    for one in body if isinstance(body, list) else ():
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            yield one.value
