"""Check of datasources: whether they can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from falcon_assets.catalog.store import EntityStore
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem
from falcon_assets.doctor.side_by_side import side_by_side
from falcon_assets.errors import FalconError
from falcon_assets.hooks import installed
from falcon_assets.model.datasource import Datasource

ANSWER_SECONDS = 8.0


def check_datasources(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the datasources answer that are here, or that feeds here need, and let us in; nothing is written."""
    store = context.entities_if_sound()
    found = _needed(store, context.settings.colo) if store and "datasources" in installed() else []
    asked = {
        (one.name, name): partial(_why_away, one, name, context)
        for one in found
        for name in ("readonly", "write")
        if getattr(one.interfaces, name) is not None
    }
    if not asked:
        yield ok("no datasource is needed here")
        return
    answers = side_by_side(asked, ANSWER_SECONDS)
    for name, interface in asked:
        why = answers.get((name, interface), f"no answer within {ANSWER_SECONDS:g} s")
        if why:
            about = why if f"{name!r}" in why else f"datasource {name!r}: {why}"
            yield problem(about, f"fix interfaces.{interface} of datasource {name}, or start it")
        else:
            yield ok(f"datasource {name!r}: interfaces.{interface} is reached")


def _needed(store: EntityStore, colo: str | None) -> list[Datasource]:
    used = {one.datasource for one in (*store.imports, *store.exports)}
    return [one for one in store.datasources.values() if one.name in used or colo in (None, one.colo)]


def _why_away(datasource: Datasource, interface: str, context: CheckContext) -> str:
    """Empty where it answers."""
    from falcon_assets.features.datasources.access import access_to  # noqa: PLC0415 - only where there is one
    from falcon_assets.features.datasources.datasource_type import datasource_types  # noqa: PLC0415

    try:
        access = access_to(datasource, context.environ, write=interface == "write")
        datasource_types()[datasource.type].require_reachable(access)
    except FalconError as error:
        return str(error)
    return ""
