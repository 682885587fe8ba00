"""Values of storage options are never shown, names of environment variables are."""

from __future__ import annotations

from typing import Any

from falcon_assets.catalog.yaml_files.secrets import SECRET_KEY

HIDDEN = "*****"


def hidden(value: Any) -> Any:
    """The plain values of a definition, without those of its storage options."""
    if isinstance(value, dict):
        return {key: _stars(item) if key == SECRET_KEY else hidden(item) for key, item in value.items()}
    return [hidden(item) for item in value] if isinstance(value, list) else value


def _stars(value: Any) -> Any:
    if isinstance(value, dict):
        return value if set(value) == {"env"} else {key: _stars(item) for key, item in value.items()}
    return None if value is None else HIDDEN
