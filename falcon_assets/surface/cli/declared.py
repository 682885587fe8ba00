"""Commands from declared operations: their arguments, options and help; what is printed for people is given beside."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from annotated_types import Ge, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from falcon_assets.errors import ExpressionError, QueryError, SettingsError, UsageError
from falcon_assets.operations.installation import open_installation
from falcon_assets.operations.operation import Change, Given, Operation, data_of, plain_type
from falcon_assets.operations.page_links import link_of
from falcon_assets.operations.paging import ListOperation, LongList
from falcon_assets.surface.cli.listing import keyset_options, list_options, print_json
from falcon_assets.surface.cli.parameters import ANY_PATH, INSTANT, PROPERTIES, one_instance, require_order
from falcon_assets.surface.cli.server import here_or_there

_TYPES = {datetime: INSTANT, Path: ANY_PATH}
Decorator = Callable[[Any], Any]


class _Parsed(click.ParamType):  # type: ignore[type-arg]  # newer versions of click only
    """Text that a class reads with its ``parse``."""

    def __init__(self, kind: Any) -> None:
        self.kind, self.name = kind, kind.__name__.lower()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return value if isinstance(value, self.kind) else self.kind.parse(value)
        except (UsageError, ExpressionError) as error:
            self.fail(str(error), param, ctx)


def command(operation: type[Operation], show: Callable[[Any], None], json: str = "Print JSON.") -> click.Command:
    """The command of an operation. Its exit code is 1 where what it gives has ``failed``.

    ``json`` is the help of ``--json``; empty: it has none.
    """

    @command_of(operation, json)
    def run(asked: Operation, as_json: bool) -> None:
        with open_installation() as installation:
            perform(asked.run(installation), show, as_json=as_json)

    return run


def perform(result: Any, show: Callable[[Any], None], *, as_json: bool) -> None:
    if as_json:
        print_json(data_of(result))
    else:
        show(result)
    if getattr(result, "failed", False):
        sys.exit(1)


def print_data(result: Any) -> None:
    """Prints a result for which nobody has written a display."""
    if isinstance(result, str):
        click.echo(result)
    else:
        print_json(data_of(result))


def command_of(operation: type[Operation], json: str = "Print JSON.") -> Callable[[Callable[..., None]], click.Command]:
    """Makes a function the command of an operation, for one that prints otherwise, or has options of its own.

    It takes the operation, as ``asked``, and ``as_json``.
    """

    def make(function: Callable[..., None]) -> click.Command:
        def made(as_json: bool = False, **given: Any) -> Any:
            shows_page = given.pop("shows_page", False)
            own = {name: given.pop(name) for name in operation.model_fields if name in given}
            require_order(own.get("start"), own.get("end"))
            try:
                asked = operation(**own)
            except QueryError as error:
                raise click.UsageError(str(error)) from error
            except ValidationError as error:
                (first, *_) = error.errors()
                said = first["msg"].removeprefix("Value error, ")
                raise click.BadParameter(said, param_hint=f"'--{first['loc'][0]}'") from error
            if shows_page:
                return _open_page(asked)
            return function(asked=here_or_there(asked, as_json=as_json), as_json=as_json, **given)

        made.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        with_options = _last_options(operation, json)(made if operation.page is None else _OPEN(made))
        for one in reversed(list(_parameters(operation))):
            with_options = one(with_options)
        name = operation.command.split()[-1]
        return click.command(name, help=inspect.getdoc(operation))(with_options)

    return make


_OPEN = click.option("--open", "shows_page", is_flag=True, help="Print the link to its page, and open it in a browser.")


def _open_page(asked: Operation) -> None:
    """Raises SettingsError where no front is known."""
    with open_installation() as installation:
        front = installation.settings.front
    if front is None:
        raise SettingsError("there is no front to open pages of: set FALCON_FRONT_URL to its address")
    link = front + link_of(asked)
    click.echo(link)
    if sys.stdout.isatty():
        click.launch(link)


def _last_options(operation: type[Operation], json: str) -> Decorator:
    if issubclass(operation, ListOperation):
        return list_options(operation.fields, operation.orders)
    if issubclass(operation, LongList):
        return keyset_options(operation.fields, operation.orders)
    if not json:
        return lambda function: function
    return click.option("--json", "as_json", is_flag=True, help=json)


def _parameters(operation: type[Operation]) -> Iterator[Decorator]:
    """Arguments first, and last what all changes have."""
    listing = next((one.model_fields for one in (ListOperation, LongList) if issubclass(operation, one)), {})
    found = [(name, one) for name, one in operation.model_fields.items() if name not in (*listing, "actor")]
    for name, field in sorted(found, key=lambda one: (not _given(one[1]).place, one[0] in Change.model_fields)):
        if not _given(field).programs_only:
            yield _parameter(name, field)


def _parameter(name: str, field: FieldInfo) -> Decorator:
    given, kind = _given(field), plain_type(field.annotation)
    is_many = get_origin(kind) is tuple
    kind = plain_type(get_args(kind)[0]) if is_many else kind
    if given.place == "INSTANCE":
        return partial(one_instance, name=name)
    if given.place:
        needed = field.is_required() or (is_many and not given.place.startswith("["))
        number = -1 if is_many else 1
        return click.argument(name, metavar=given.place, type=_type(kind, field), nargs=number, required=needed)
    options: dict[str, Any] = {"help": field.description, "metavar": given.metavar}
    flags = given.flags or (f"--{name.replace('_', '-')}",)
    if kind is bool:
        return click.option(*flags, name, is_flag=True, required=field.is_required(), **options)
    if get_origin(kind) is dict:
        return click.option(*flags, name, type=PROPERTIES, multiple=True, callback=_merged, **options)
    options |= {"type": _type(kind, field), "multiple": is_many}
    if field.is_required():
        return click.option(*flags, name, required=True, **options)
    default = () if is_many else field.default
    return click.option(*flags, name, default=default, show_default=given.shows_default, **options)


def _merged(_context: click.Context, _parameter: click.Parameter, given: Any) -> dict[str, str]:
    return {key: value for one in given for key, value in one.items()}


def _given(field: FieldInfo) -> Given:
    return next((one for one in field.metadata if isinstance(one, Given)), Given())


def _type(kind: Any, field: FieldInfo) -> Any:
    if kind in _TYPES:
        return _TYPES[kind]
    if values := get_args(kind) if get_origin(kind) is Literal else _given(field).values:
        return click.Choice(list(values), case_sensitive=False)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return click.Choice([one.value for one in kind], case_sensitive=False)
    if kind is int:
        ends = {type(one): one for one in field.metadata}
        low, high = ends.get(Ge), ends.get(Le)
        return click.IntRange(low and low.ge, high and high.le) if low or high else int
    return _Parsed(kind) if hasattr(kind, "parse") else kind
