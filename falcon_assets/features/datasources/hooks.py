"""Hooks of datasources: what their types say about definitions, and which of them can be used here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.errors import Problem


@hookimpl
def definition_problems(definitions: Definitions, programs: bool) -> list[Problem]:
    if programs or not definitions.datasources:
        return []
    from falcon_assets.features.datasources.checks import check_datasources

    return list(check_datasources(definitions))


@hookimpl
def datasource_kinds() -> Mapping[str, tuple[bool, bool]]:
    from falcon_assets.base.installed import is_installed
    from falcon_assets.features.datasources.datasource_type import datasource_types

    there = {name: one for name, one in datasource_types().items() if is_installed(one.package)}
    return {name: (bool(one.reads), bool(one.loads)) for name, one in there.items()}
