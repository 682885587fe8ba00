"""Hooks of datasources: what their types say about definitions."""

from __future__ import annotations

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
