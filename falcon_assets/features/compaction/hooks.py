"""Hooks of compaction: problems of what feeds declare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.errors import Problem


@hookimpl
def definition_problems(definitions: Definitions, programs: bool) -> list[Problem]:
    if programs or not any(one.entity.compact for one in definitions.feeds.values()):
        return []
    from falcon_assets.features.compaction.checks import check_compaction

    return list(check_compaction(definitions))
