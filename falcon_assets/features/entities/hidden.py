"""Values of storage options, and of secret properties and options, are never shown; names of variables are."""

from __future__ import annotations

from typing import Any

from falcon_assets.base.texts import STARS
from falcon_assets.base.texts import hidden as without_secrets
from falcon_assets.model.secret_values import SECRET_KEY, is_secret

_NAMED = ("properties", "options")
"""Keys of mappings in which the name of a value decides whether it is secret."""


def hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _stars(item) if key == SECRET_KEY else _properties(item) if key in _NAMED else hidden(item)
            for key, item in value.items()
        }
    if isinstance(value, str):
        return without_secrets(value)
    return [hidden(item) for item in value] if isinstance(value, list) else value


def _stars(value: Any) -> Any:
    if isinstance(value, dict):
        return value if set(value) == {"env"} else {key: _stars(item) for key, item in value.items()}
    return None if value is None else STARS


def _properties(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: STARS if is_secret(str(key)) and item is not None else hidden(item) for key, item in value.items()}
