"""Types of parameters: what cannot be read is told as click tells it, with exit code 2."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import format_instant, parse_instant


class _Instant(click.ParamType):  # type: ignore[type-arg]  # newer versions of click only
    """``YYYY-MM-DDTHH:MMZ``; also the name of its place in the help text."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The aware UTC datetime."""
        if isinstance(value, datetime):
            return value
        try:
            return parse_instant(value)
        except ExpressionError as error:
            self.fail(str(error), param, ctx)


INSTANT = _Instant()
"""An instant, as of ``--start``."""


def require_order(start: datetime | None, end: datetime | None) -> None:
    """Checks that --end is not before --start.

    Raises:
        click.BadParameter: it is.
    """
    if start and end and end < start:
        raise click.BadParameter(f"it is before --start {format_instant(start)}", param_hint="--end")
