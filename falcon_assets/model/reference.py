"""Secrets that definitions refer to: in a variable, in a file, or encrypted for the place where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ModelWrapValidatorHandler, PrivateAttr, model_validator

from falcon_assets.model.base import Declaration, NonEmpty

ENCRYPTED = "encrypted"
"""The key of an encrypted value, alone in its mapping."""
KeyPath: TypeAlias = tuple[str | int, ...]


class EnvironmentValue(Declaration):
    """A value that is read from the environment when it is used, and never printed."""

    env: NonEmpty
    """Name of the environment variable."""

    def __str__(self) -> str:
        return f"the environment variable {self.env}"

    @property
    def label(self) -> str:
        """Identifies the reference; no secret."""
        return self.env


def _placed_well(path: str) -> str:
    if path.startswith("~") or ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} must be absolute, or the path of a file below FALCON_HOME")
    return path


class FileValue(Declaration):
    """A value that is read from a file when it is used, and never printed."""

    file: Annotated[NonEmpty, AfterValidator(_placed_well)]
    """Path of the file: absolute, or below FALCON_HOME. A line break at the end of the file is no part of the value."""

    def __str__(self) -> str:
        return f"the file {self.file}"

    @property
    def label(self) -> str:
        """Identifies the reference; no secret."""
        return self.file


class EncryptedValue(Declaration):
    """A value that is decrypted when it is used, and never printed."""

    encrypted: NonEmpty
    """Printed by ``falcon secrets encrypt``, for this place only."""
    _place: str = PrivateAttr("")

    @model_validator(mode="wrap")
    @classmethod
    def _with_place(cls, value: Any, handler: ModelWrapValidatorHandler[EncryptedValue]) -> EncryptedValue:
        made = handler(value)
        if isinstance(value, _Placed):
            made._place = value.place
        return made

    @property
    def place(self) -> str:
        """Kind and name of the entity, and the keys that lead to the value: ``cluster lake storage_options.secret``.

        Items of lists count by their names, where they have some. Empty outside of an entity.
        """
        return self._place

    def __str__(self) -> str:
        return f"the encrypted value of {self._place}"

    @property
    def label(self) -> str:
        """Identifies the reference; no secret."""
        return self._place


Reference: TypeAlias = EnvironmentValue | FileValue | EncryptedValue
NAMES = ("env", "file")
"""The keys of references whose values are names, and no secrets."""


class WithReferences(Declaration):
    """An entity, whose encrypted values know where they stand."""

    @model_validator(mode="before")
    @classmethod
    def _placed(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or next(encrypted_in(data), None) is None:
            return data
        return _placed(data, _entity(data))


class _Placed(dict[str, Any]):
    """The mapping of an encrypted value."""

    def __init__(self, value: Mapping[str, Any], place: str) -> None:
        super().__init__(value)
        self.place = place


def encrypted_in(entity: Any) -> Iterator[tuple[KeyPath, str, str]]:
    """Yields the encrypted values of an entity's plain data: path, place, and encrypted text."""
    pending: list[tuple[KeyPath, str, Any]] = [((), _entity(entity), entity)]
    while pending:
        path, place, value = pending.pop()
        if _is_encrypted(value):
            yield path, place, value[ENCRYPTED]
        else:
            pending += [((*path, key), _below(place, step), inner) for key, step, inner in _parts(value)]


def references_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Reference]]:
    """Yields the references of an entity, or of a part of one, with the keys that lead to them."""
    if isinstance(value, Reference):
        yield path, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from references_in(getattr(value, name), (*path, name))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from references_in(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from references_in(inner, (*path, str(index)))


def _placed(value: Any, place: str) -> Any:
    if _is_encrypted(value):
        return _Placed(value, place)
    made = {key: _placed(inner, _below(place, step)) for key, step, inner in _parts(value)}
    if isinstance(value, dict):
        return made
    return [*made.values()] if isinstance(value, list | tuple) else value


def _entity(data: Any) -> str:
    said = data if isinstance(data, Mapping) else {}
    return f"{said.get('kind')} {said.get('name')} "


def _below(place: str, step: str) -> str:
    return f"{place}{step}" if place.endswith(" ") else f"{place}.{step}"


def _is_encrypted(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(ENCRYPTED), str)


def _parts(value: Any) -> Iterator[tuple[str | int, str, Any]]:
    """Keys, or indexes, of a mapping or list, how places name them, and what is there."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, str(key), inner
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            name = inner.get("name") if isinstance(inner, dict) else None
            yield index, name if isinstance(name, str) else str(index), inner
