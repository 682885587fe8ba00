"""Types of parameters: values that cannot be read are errors of click, with exit code 2."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from falcon_assets.base.new_files import write_file
from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import format_instant, parse_instant


class _Instant(click.ParamType):  # type: ignore[type-arg]  # newer versions of click only
    """``YYYY-MM-DDTHH:MMZ``; also the name of its place in the help text."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return parse_instant(value)
        except ExpressionError as error:
            self.fail(str(error), param, ctx)


class _AnyPath(click.Path):
    """A path that may be there or not; one that no file can have is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            os.lstat(value)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # whoever needs it says so
        except (OSError, ValueError) as error:
            self.fail(f"no file can have this name: {getattr(error, 'strerror', None) or error}", param, ctx)
        return super().convert(value, param, ctx)


@dataclass(frozen=True)
class NewFile:
    """A file to be written; ``path`` None: standard output."""

    path: Path | None

    def write(self, text: str) -> None:
        """Writes all or nothing; raises SettingsError where it cannot be written, or is no regular file."""
        if self.path is None:
            click.echo(text, nl=False)
        else:
            write_file(self.path, text)


class _NewFileType(click.ParamType):  # type: ignore[type-arg]  # newer versions of click only
    """A file that is written in one step; ``-`` is standard output."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NewFile:
        return value if isinstance(value, NewFile) else NewFile(None if value == "-" else Path(value))


class _Properties(click.ParamType):  # type: ignore[type-arg]  # newer versions of click only
    """``KEY=VALUE``, or a file of such lines; empty ones, and those that begin with #, say nothing."""

    name = "key=value|file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        if "=" in value:
            return dict([self._pair(value, value.partition("=")[0], param, ctx)])
        try:
            lines = Path(value).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is no text in UTF-8"
            self.fail(f"{value!r} is no KEY=VALUE, and no file that can be read: {why}", param, ctx)
        said = {number: text for number, line in enumerate(lines, 1) if (text := line.strip()) and text[0] != "#"}
        return dict(self._pair(text, f"{value}:{number}", param, ctx) for number, text in said.items())

    def _pair(self, text: str, where: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        key, equals, setting = text.partition("=")
        if not equals or not key.strip():
            self.fail(f"{where}: write KEY=VALUE", param, ctx)
        return key.strip(), setting.strip()


_Command = TypeVar("_Command", bound=Callable[..., Any])

INSTANT = _Instant()
"""An instant, as of ``--start``."""
NEW_FILE = _NewFileType()
"""A file to be written."""
PROPERTIES = _Properties()
"""Properties of a process."""
ANY_PATH = _AnyPath(path_type=Path)
"""A path."""


_START = f"{__name__}.start"


def one_instance(command: _Command, name: str = "instance") -> _Command:
    """The argument INSTANCE of a command about one instance, which Apache Falcon's users write ``--start``."""
    start = click.option(
        "--start",
        "start_instead",
        type=INSTANT,
        is_eager=True,  # it is known when the argument is read
        expose_value=False,
        callback=lambda ctx, _, value: ctx.meta.__setitem__(_START, value),
        help="Same as the argument INSTANCE, as Apache Falcon writes it.",
    )
    named = click.argument(name, metavar="INSTANCE", type=INSTANT, required=False, callback=_instance_or_start)
    return named(start(command))


def _instance_or_start(ctx: click.Context, param: click.Parameter, value: datetime | None) -> datetime:
    start: datetime | None = ctx.meta[_START]
    if start and value and start != value:
        raise click.BadParameter(f"INSTANCE is {format_instant(value)}: give one of both", param_hint="--start")
    given = value or start
    if given is None:
        raise click.MissingParameter(ctx=ctx, param=param, param_hint="INSTANCE")
    return given


def require_order(start: datetime | None, end: datetime | None) -> None:
    """Raises click.BadParameter where --end is before --start."""
    if start and end and end < start:
        raise click.BadParameter(f"it is before --start {format_instant(start)}", param_hint="--end")
