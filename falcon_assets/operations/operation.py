"""Operations, each declared once: commands, the configuration of jobs, the reference and the audit derive from it.

An operation is a class: its docstring says what it is for, its fields what it is given, :meth:`Operation.run` does it.
What it gives is a :class:`Result`, whose data ``--json`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field

from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.installation import Installation


@dataclass(frozen=True)
class Given:
    """How a field is given to a command, where that is not by an option of its name.

    Attributes:
        place: Its name among the arguments: it is given without an option.
        flags: Other names of the option, as ``-n``.
        metavar: Stands for the value in the help.
        programs_only: Whether only jobs and Python give it.
        shows_default: Whether the help has the default.
    """

    place: str = ""
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    programs_only: bool = False
    shows_default: bool = False


class Operation(BaseModel):
    """A request for an operation; immutable, and checked when it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, defer_build=True)
    command: ClassVar[str]
    """As after ``falcon``; the audit has it, too."""
    needs: ClassVar[str] = ""
    """The required input, for the message about requests with less."""

    def run(self, installation: Installation) -> Any:
        raise NotImplementedError


def plain_type(annotation: Any) -> Any:
    """The type of a field, without None and the metadata of pydantic."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        (kind,) = (one for one in get_args(annotation) if one is not NoneType)
        return plain_type(kind)
    return annotation


class Change(Operation):
    """An operation that is written into the audit.

    Attributes:
        actor: None: the user of the operating system.
        dry_run: Dry runs are recorded only where they are denied.
    """

    actor: str | None = Field(None, description="Who asks; None: the user of the operating system.")
    reason: str = Field("", description="Why; it is recorded.")
    dry_run: bool = Field(False, description="Only say what would change.")


class Result:
    """Base of dataclasses that operations give: their data is that of their fields, in order.

    Lists, mappings and other dataclasses are followed; an :data:`.Instant` is written to the minute, other times in
    full.
    """

    keys: ClassVar[tuple[str, ...]] = ()
    """Fields and properties that are its data, where these are not just the fields; ``settled=settled_at`` renames."""

    def as_data(self) -> dict[str, Any]:
        return _fields(self, self.keys)


def _fields(value: Any, keys: tuple[str, ...] = ()) -> dict[str, Any]:
    shape = _shape(type(value), keys)  # type: ignore[arg-type]  # every class can be hashed
    return {key: data_of(read(value), is_instant=is_instant) for key, read, is_instant in shape}


@cache
def _shape(result: type[Any], keys: tuple[str, ...]) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    """Each key, how its value is read, and whether that is an instant."""
    hints = get_type_hints(result, include_extras=True)
    instants = {name for name, hint in hints.items() if Instant in (hint, *get_args(hint))}
    parts = (name.partition("=") for name in keys or [one.name for one in fields(result)])
    pairs = ((key, source or key) for key, _, source in parts)
    return tuple((key, attrgetter(source), source in instants) for key, source in pairs)


def data_of(value: Any, *, is_instant: bool = False) -> Any:
    """Converts a result of an operation, or a part of it, for JSON."""
    if isinstance(value, datetime):
        return format_instant(value) if is_instant else value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {data_of(key): data_of(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "as_data"):
        return [data_of(one, is_instant=is_instant) for one in value]
    return value.as_data() if hasattr(value, "as_data") else _fields(value)


_SCALARS = frozenset({str, int, float, bool, type(None)})
