"""Hooks of quality: problems of declared checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.errors import Problem


@hookimpl
def definition_problems(definitions: Definitions, programs: bool) -> list[Problem]:
    if not any(one.entity.checks for one in definitions.feeds.values()):
        return []
    from falcon_assets.features.quality.definitions import check_checks, check_sql

    return list((check_sql if programs else check_checks)(definitions))
