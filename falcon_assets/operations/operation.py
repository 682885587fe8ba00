"""Operations, each declared once: commands, the configuration of jobs, the reference and the audit derive from it.

An operation is a class: its docstring says what it is for, its fields what it is given, :meth:`Operation.run` does it.
What it gives is a :class:`Result`, whose data ``--json`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field

from falcon_assets.model.access import Role
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.installation import Installation


@dataclass(frozen=True)
class Given:
    """How a field is given to a command, where that is not by an option of its name.

    Attributes:
        place: Its name among the arguments: it is given without an option.
        flags: Other names of the option, as ``-n``.
        metavar: Stands for the value in the help.
        values: The texts that it may be.
        programs_only: Whether only jobs and Python give it.
        shows_default: Whether the help has the default.
    """

    place: str = ""
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    values: Collection[str] = ()
    programs_only: bool = False
    shows_default: bool = False


class Operation(BaseModel):
    """A request for an operation; immutable, and checked when it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, defer_build=True)
    command: ClassVar[str]
    """As after ``falcon``; the audit has it, too."""
    needs: ClassVar[str] = ""
    """The required input, for the message about requests with less."""
    role: ClassVar[Role] = Role.VIEWER
    """Who may request it; the ``acl`` of entities may let their owners and groups, too (:attr:`of_owners`)."""
    of_owners: ClassVar[bool] = False
    """Whether it asks the ``acl`` of what it changes, so that owners and groups may whatever their role is."""
    remote: ClassVar[bool] = True
    """Whether it can be requested over the network; not what reads files of its user, or is about their terminal."""

    page: ClassVar[str | None] = None
    """The page of the front that shows what it gives, below ``/falcon``; None: there is none."""

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

    role = Role.EDITOR
    of_owners = True
    actor: str | None = Field(
        None, description="Name of the user who requests it; None: the user of the operating system."
    )
    reason: str = Field("", description="Reason for the change, kept in the audit log.")
    dry_run: bool = Field(False, description="Show what would change; change nothing.")


class Result:
    """Base of dataclasses that operations give: their data is that of their fields, in order.

    Lists, mappings and other dataclasses are followed; an :data:`.Instant` is written to the minute, other times in
    full.
    """

    keys: ClassVar[tuple[str, ...]] = ()
    """Fields and properties that are its data, where these are not just the fields; ``settled=settled_at`` renames."""

    def as_data(self) -> dict[str, Any]:
        return _converter(type(self))(self)  # type: ignore[arg-type]  # every class can be hashed


@cache
def _converter(kind: type[Any]) -> Callable[[Any], dict[str, Any]]:
    """Compiled once for each dataclass, from its annotations: long lists have many of one."""
    hints = get_type_hints(kind, include_extras=True)
    pairs = (one.partition("=") for one in getattr(kind, "keys", ()) or [one.name for one in fields(kind)])
    parts = (f"{name!r}: {_conversion(source or name, hints.get(source or name, Any))}" for name, _, source in pairs)
    known = {"data_of": data_of, "format_instant": format_instant}
    made: Callable[[Any], dict[str, Any]] = eval(f"lambda it: {{{', '.join(parts)}}}", known)  # noqa: S307 - of names
    return made


def _conversion(name: str, hint: Any) -> str:
    """Python text that converts the value of a field or property of ``it``."""
    value = f"it.{name}"
    kinds = set(get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,))
    optional, kinds = NoneType in kinds, kinds - {NoneType}
    if kinds <= _DATA:
        return value
    if kinds == {Instant}:
        converted = f"format_instant({value})"
    elif kinds == {datetime}:
        converted = f"{value}.isoformat()"
    elif all(isinstance(one, type) and issubclass(one, Enum) for one in kinds):
        converted = f"{value}.value"
    else:
        return f"data_of({value}, is_instant={Instant in get_args(hint)})"
    return f"None if {value} is None else {converted}" if optional else converted


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
    return value.as_data() if hasattr(value, "as_data") else Result.as_data(value)


_SCALARS = frozenset({str, int, float, bool, NoneType})
_DATA = {*_SCALARS, dict[str, Any]}
