"""Checks of datasources by their types, and of imports and exports by what these can do."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.util import find_spec

from falcon_assets.catalog.declared import Declared, Definitions, transfers_of
from falcon_assets.catalog.validation import unknown_word
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import Problem
from falcon_assets.features.datasources.datasource_type import DatasourceType, datasource_types
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.feed import Feed
from falcon_assets.model.secret_values import is_secret
from falcon_assets.model.transfer import Export, Import, UpsertLoad

_BY_TIME = ("insert", "replace_partition")


def check_datasources(definitions: Definitions) -> Iterator[Problem]:
    for one in definitions.datasources.values():
        known = datasource_types().get(one.entity.type)
        if known is None:
            yield one.problem(("type",), unknown_word("type", one.entity.type, tuple(datasource_types())))
        else:
            yield from _unfit(one, known)
    for feed in definitions.feeds.values():
        targets: dict[tuple[str | int, str], KeyPath] = {}
        for path, transfer in transfers_of(feed):
            if isinstance(transfer, Export):
                name = transfer.target.name
                if (first := targets.setdefault((path[1], name), path)) != path:
                    line = feed.document.position(first).line
                    message = f"datasource {name!r} is a target already in line {line}: each export needs another one"
                    yield feed.problem((*path, "target", "name"), message)
            yield from _impossible(definitions, feed, path, transfer)
    yield from _shared(definitions)


def _unfit(one: Declared[Datasource], known: DatasourceType) -> Iterator[Problem]:
    for name in ("readonly", "write"):
        interface = getattr(one.entity.interfaces, name)
        if interface and (why := known.endpoint_problem(interface.endpoint)):
            yield one.problem(("interfaces", name, "endpoint"), why)
    for option, value in one.entity.driver.items():
        if known.driver is not None and option not in known.driver:
            yield one.problem(("driver", option), unknown_word("option", option, tuple(known.driver)), at_key=True)
        elif isinstance(value, str) and is_secret(option):
            message = "must be {env: NAME}, {file: PATH} or {encrypted: ...}: secrets do not stand in definitions"
            yield one.problem(("driver", option), message)
    if known.module and find_spec(known.module) is None:
        yield one.warning(("type",), f"its driver is not installed here: pip install '{known.package}'")


def _impossible(
    definitions: Definitions, feed: Declared[Feed], path: KeyPath, transfer: Import | Export
) -> Iterator[Problem]:
    end = transfer.source if isinstance(transfer, Import) else transfer.target
    declared = definitions.datasources.get(end.name)
    known = datasource_types().get(declared.entity.type) if declared else None
    if declared is None or known is None:
        return
    if isinstance(transfer, Import):
        read = next(key for key in ("table", "query", "path", "topic") if getattr(transfer.source, key) is not None)
        if read not in known.reads:
            yield feed.problem((*path, "source", read), _cannot(known, "source", f"read by {read}", known.reads))
        return
    if declared.entity.interfaces.write is None:
        message = f"datasource {end.name!r} has no interfaces.write: nothing can be written there"
        yield feed.problem((*path, "target", "name"), message)
    load = "upsert" if isinstance(transfer.load, UpsertLoad) else transfer.load
    where = (*path, "load") if "load" in transfer.model_fields_set else path
    if load not in known.loads:
        yield feed.problem(where, _cannot(known, "target", f"written by {load}", known.loads))
    elif "replace_partition" in known.loads and load in _BY_TIME and transfer.partition is None:
        message = f"load: {load} needs partition: the column of the table that has the nominal time of the instance"
        yield feed.problem(where, message)
    elif load == "replace" and transfer.partition is not None:
        yield feed.problem((*path, "partition"), "with load: replace the table has no other instances to tell apart")


def _shared(definitions: Definitions) -> Iterator[Problem]:
    """Exports that would replace each other's rows."""
    first: dict[tuple[str, str], tuple[Declared[Feed], KeyPath, Export]] = {}
    for feed in definitions.feeds.values():
        for path, transfer in transfers_of(feed):
            if not isinstance(transfer, Export) or not _replaces(definitions, transfer):
                continue
            target = (transfer.target.name, transfer.target.table)
            other, there, export = first.setdefault(target, (feed, path, transfer))
            by_key = isinstance(transfer.load, UpsertLoad) and isinstance(export.load, UpsertLoad)
            if not by_key and (there != path or other is not feed):
                message = (
                    f"table {target[1]!r} of {target[0]!r} is the target of feed {other.entity.name!r} already "
                    f"({other.document.position(there)}), and one would replace rows of the other: take load: upsert "
                    "for both, or two tables"
                )
                yield feed.problem((*path, "target", "table"), message)


def _replaces(definitions: Definitions, export: Export) -> bool:
    declared = definitions.datasources.get(export.target.name)
    known = datasource_types().get(declared.entity.type) if declared else None
    return known is not None and "replace" in known.loads


def _cannot(known: DatasourceType, end: str, how: str, able: Collection[str]) -> str:
    what = f"a datasource of type {known.name!r}"
    return f"{what} is not {how}; legal: {', '.join(able)}" if able else f"{what} cannot be a {end}"
