"""Reasons for the state of an instance: as data for programs, as a sentence for people."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, ClassVar

from falcon_assets.model.instant import format_instant


@dataclass(frozen=True)
class Reason:
    """A reason, whose sentence is its ``str``; each kind is a class, its fields are the details."""

    kind: ClassVar[str]
    """Derived from the name of the class: ``inputs_missing``."""

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def as_data(self) -> dict[str, Any]:
        """``kind``, ``text`` and the fields, in types of JSON; times as ``YYYY-MM-DDTHH:MMZ``, lengths in seconds."""
        said = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"kind": self.kind, "text": str(self), **said}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value
