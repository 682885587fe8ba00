"""Options of file systems that hold further options."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Definitions
from falcon_assets.catalog.secrets import SECRET_KEY
from falcon_assets.catalog.validation import SECRET_RULES
from falcon_assets.errors import Problem


def check_storage_options(definitions: Definitions) -> Iterator[Problem]:
    """Mappings where fsspec takes none: it names those that it takes ``client_kwargs``, ``config_kwargs`` and so on."""
    for cluster in definitions.clusters.values():
        for name, value in cluster.entity.storage_options.items():
            if isinstance(value, dict) and not name.endswith("_kwargs"):
                yield cluster.problem((SECRET_KEY, name), SECRET_RULES[True])
