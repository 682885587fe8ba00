"""Entities of a tree by name."""

from __future__ import annotations

from collections.abc import Iterable

from falcon_assets.catalog.stored_tree import Key, Stored
from falcon_assets.errors import UnknownEntityError
from falcon_assets.model.expression import nearest


def keys_named(stored: Stored, name: str, kind: str | None) -> list[Key]:
    """The entity of that name, if there is one.

    Raises:
        UnknownEntityError: there are several, and ``kind`` is not given.
    """
    found = [key for key in stored.by_key if key[1] == name and kind in (None, key[0])]
    if len(found) > 1:
        raise UnknownEntityError(
            f"there is {' and '.join(f'a {one}' for one, _ in found)} {name!r}: say which one with --kind"
        )
    return found


def stored_keys(stored: Stored, names: Iterable[str], kind: str | None) -> list[Key]:
    """The entities of these names.

    Raises:
        UnknownEntityError: one is not there, or there are several, and ``kind`` is not given.
    """
    keys = []
    for name in names:
        found = keys_named(stored, name, kind)
        if not found:
            close = nearest(name, [known for _, known in stored.by_key])
            raise UnknownEntityError(f"there is no {kind or 'entity'} {name!r}{close}")
        keys += found
    return keys
