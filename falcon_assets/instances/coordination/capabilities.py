"""What executors can do that do not declare it: what is installed here, found out by trying."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from falcon_assets.base.installed import is_installed
from falcon_assets.hooks import hooks, merged
from falcon_assets.model.executor import Capability, ClusterExecutor
from falcon_assets.planning.capabilities import FILE, HIVE, ICEBERG_TABLE, possible_capabilities


def capabilities_of(executor: ClusterExecutor) -> Collection[Capability]:
    return installed_capabilities() if executor.capabilities is None else executor.capabilities


@cache
def installed_capabilities() -> tuple[Capability, ...]:
    """Those of this machine; runs have the same libraries, whatever their executor."""
    tables = {kind for kind in (HIVE, ICEBERG_TABLE) if is_installed(f"falcon-assets[{kind}]")}
    stores = {FILE, *tables}
    kinds: dict[str, tuple[bool, bool]] = merged(hooks().datasource_kinds())
    read = {name for name, (is_read, _) in kinds.items() if is_read}
    written = {name for name, (_, is_written) in kinds.items() if is_written}
    return possible_capabilities(stores | read, stores | written)
