"""Templates of paths, and what no path may contain, wherever it is declared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, GetCoreSchemaHandler, ValidatorFunctionWrapHandler
from pydantic_core import core_schema

from falcon_assets.errors import ExpressionError
from falcon_assets.model.base import NonEmpty
from falcon_assets.model.expression import Call
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.template import Part, Variable, parse_template, value_of


def has_control_characters(text: str) -> bool:
    """Whether a line break, a NUL or another character is in it that is no text."""
    return not text.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in text)


def legal_path(text: str) -> str:
    """The path itself.

    Raises:
        ExpressionError: it has control characters, or leads upwards.
    """
    if has_control_characters(text):
        raise ExpressionError(f"{text!r}: a path must not contain control characters")
    if ".." in text.split("/"):
        raise ExpressionError(f"{text!r}: a path must not contain '..'")
    return text


def _legal_folder(text: str) -> str:
    if not any(folder not in ("", ".") for folder in text.split("/")):
        raise ExpressionError(f"{text!r} is the root itself: name a folder below it")
    return legal_path(text)


def _legal_file_name(name: str) -> str:
    if name in (".", "..") or has_control_characters(name):
        raise ExpressionError(f"{name!r} is not the name of a file")
    return name


LegalPath = Annotated[NonEmpty, AfterValidator(legal_path)]
"""A path or a URL."""
LegalFolder = Annotated[NonEmpty, AfterValidator(_legal_folder)]
"""A folder below a root, not the root itself."""
LegalFileName = AfterValidator(_legal_file_name)
"""For texts without slashes: such a text names a file."""


def is_within(inner: str, outer: str) -> bool:
    """Whether a path below a root is the other one, or lies in it."""
    first, second = ("".join(f"{one}/" for one in path.split("/") if one not in ("", ".")) for path in (inner, outer))
    return first.startswith(second)


TIME_VARIABLES = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE")
"""Coarsest first."""
_FROM_ONE = ("MONTH", "DAY")
"""Those whose first value is 1."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(?=/|$)")
_LONGEST = 4096
"""The limit of file systems."""
_DIGITS = {"YEAR": 4, "MONTH": 2, "DAY": 2, "HOUR": 2, "MINUTE": 2}


@dataclass(frozen=True)
class PathTemplate:
    """A path with ``${YEAR} ${MONTH} ${DAY} ${HOUR} ${MINUTE}`` and other variables.

    Rendering and matching speak of a *wall-clock* time (naive): which zone's wall it is, is the feed's matter.
    """

    text: str

    @classmethod
    def parse(cls, text: str) -> PathTemplate:
        """Reads a template.

        Raises:
            ExpressionError: empty, too long, an unclosed ``${``, an expression where only variables may stand, ``..``,
                control characters, or a URL that is chained, has credentials in it or stands in the middle.
        """
        if len(text) > _LONGEST:
            raise ExpressionError(f"a path of {len(text):,} characters: {_LONGEST:,} at most")
        if not text.strip():
            raise ExpressionError("a path template must not be empty")
        template = cls(text.strip())
        for part in template.parts:
            if isinstance(part, Call):
                raise ExpressionError(f"{text!r}: only variables may stand in a path, not {part.name}(...)")
        legal_path(template.text)
        if "://" in template.text:
            _check_url(template.text)
        return template

    @cached_property
    def is_url(self) -> bool:
        """Whether it is a whole URL, with the scheme in front."""
        return bool(_SCHEME.match(self.text))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Literals and variables, in order."""
        return parse_template(self.text)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The names of all variables, in order of first use."""
        return tuple(dict.fromkeys(part.name for part in self.parts if isinstance(part, Variable)))

    @property
    def is_timed(self) -> bool:
        """Whether a time variable stands in it."""
        return any(name in TIME_VARIABLES for name in self.variables)

    def missing_for(self, frequency: Frequency) -> tuple[str, ...]:
        """The time variables without which two instances of ``frequency`` would share a path."""
        needed = TIME_VARIABLES[: TIME_VARIABLES.index(_finest_needed(frequency)) + 1]
        return tuple(name for name in needed if name not in self.variables)

    def render(self, wall: datetime, values: Mapping[str, str]) -> str:
        """The path at wall-clock time ``wall``.

        Raises:
            ExpressionError: a variable that is neither a time variable nor in ``values``.
        """
        if self._layout is not None:
            return self._layout.format(wall.year, wall.month, wall.day, wall.hour, wall.minute)
        times = _time_values(wall)
        return "".join(
            part if isinstance(part, str) else times.get(part.name) or value_of(self.text, part, values)
            for part in self.parts
            if not isinstance(part, Call)
        )

    def fixed_prefix(self, values: Mapping[str, str]) -> str:
        """The folders above the first time variable, without a trailing slash: nothing above them is this feed's."""
        prefix = ""
        for part in self.parts:
            if isinstance(part, Variable) and part.name in TIME_VARIABLES:
                break
            prefix += (
                part
                if isinstance(part, str)
                else value_of(self.text, part, values)
                if isinstance(part, Variable)
                else ""
            )
        else:
            return prefix.rstrip("/")
        return prefix.rpartition("/")[0]

    def match(self, path: str, values: Mapping[str, str]) -> datetime | None:
        """The earliest wall-clock time whose path could be ``path``; None where it does not match *exactly*."""
        prefix, pattern = self._own_pattern or self._pattern(values)
        found = pattern.fullmatch(path, len(prefix)) if path.startswith(prefix) else None
        if found is None:
            return None
        fields = {name: int(digits) for name, digits in found.groupdict().items()}
        try:
            year, month, day, hour, minute = (fields.get(name, int(name in _FROM_ONE)) for name in TIME_VARIABLES)
            return datetime(year, month, day, hour, minute)
        except ValueError:
            return None

    # A template of time variables only is met a hundred thousand times in one listing: both ways are prepared for it.

    @cached_property
    def _layout(self) -> str | None:
        """The path as a format of ``str.format``, for year to minute; None where there are other variables."""
        if set(self.variables) - set(TIME_VARIABLES):
            return None
        return "".join(
            part.replace("{", "{{").replace("}", "}}")
            if isinstance(part, str)
            else f"{{{TIME_VARIABLES.index(part.name)}:0{_DIGITS[part.name]}d}}"
            for part in self.parts
        )

    @cached_property
    def _own_pattern(self) -> tuple[str, re.Pattern[str]] | None:
        return None if self._layout is None else self._pattern({})

    def _pattern(self, values: Mapping[str, str]) -> tuple[str, re.Pattern[str]]:
        """The text before the first time variable, and what the rest is to match; many feeds share that, compiled."""
        seen: set[str] = set()
        prefix, rest = "", ""
        for part in self.parts:
            if isinstance(part, Variable) and part.name in _DIGITS:
                again, digits = f"(?P={part.name})", f"(?P<{part.name}>[0-9]{{{_DIGITS[part.name]}}})"
                rest += again if part.name in seen else digits
                seen.add(part.name)
            elif not isinstance(part, Call):
                text = part if isinstance(part, str) else value_of(self.text, part, values)
                prefix, rest = (prefix, rest + re.escape(text)) if seen else (prefix + text, rest)
        return prefix, re.compile(rest)

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        def validate(value: Any, read_text: ValidatorFunctionWrapHandler) -> PathTemplate:
            return value if isinstance(value, cls) else cls.parse(read_text(value))

        return core_schema.no_info_wrap_validator_function(
            validate,
            core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(str, return_schema=core_schema.str_schema()),
        )


def _check_url(text: str) -> None:
    found = _SCHEME.match(text)
    if found is None or "://" in text[found.end(1) + 3 :]:
        raise ExpressionError(
            f"{text!r}: '://' stands only after the scheme of a whole URL, such as s3://bucket/folder"
        )
    if found[1].lower() in ("file", "local") and found[2]:
        raise ExpressionError(f"{text!r} needs three slashes: file:///folder")
    # What names a container (abfs://container@account/...) is no secret.
    if re.search(r":.*@", found[2]):
        raise ExpressionError("a location must not hold credentials: name them in storage_options as {env: NAME}")


def _time_values(wall: datetime) -> dict[str, str]:
    numbers: Iterable[int] = (wall.year, wall.month, wall.day, wall.hour, wall.minute)
    return {name: f"{number:0{_DIGITS[name]}d}" for name, number in zip(TIME_VARIABLES, numbers, strict=True)}


def _finest_needed(frequency: Frequency) -> str:
    if frequency.unit is TimeUnit.MONTHS:
        return "MONTH" if frequency.count % 12 else "YEAR"
    if frequency.length % timedelta(hours=1):
        return "MINUTE"
    return "HOUR" if frequency.length % timedelta(days=1) else "DAY"
