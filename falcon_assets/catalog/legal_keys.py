"""Legal keys at a place of a definition, derived from the models."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def legal_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> tuple[str, ...]:
    """Returns the legal keys at ``location`` (pydantic's, with tags of unions); empty: any key is legal."""
    annotations: list[Any] = [model]
    for step in location:
        annotations = [below for annotation in annotations for below in _below(annotation, step)]
    return tuple(
        key for annotation in annotations for option in _options(annotation) for key, _ in _keyed_fields(option)
    )


def _options(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _options(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _options(member)
    else:
        yield annotation


def _keyed_fields(option: Any) -> Iterator[tuple[str, FieldInfo]]:
    if isinstance(option, type) and issubclass(option, BaseModel):
        for name, info in option.model_fields.items():
            yield info.alias or name, info


def _below(annotation: Any, step: int | str) -> Iterator[Any]:
    for option in _options(annotation):
        if get_origin(option) is tuple:
            yield get_args(option)[0]
        elif get_origin(option) is dict:
            yield get_args(option)[1]
        for key, info in _keyed_fields(option):
            if key == step:
                yield info.annotation
            elif get_origin(info.annotation) is Literal and step in get_args(info.annotation):
                yield option  # the tag of a union, not a key
