"""What is secret of definitions, and how it is hidden in every text that is recorded, told or printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from falcon_assets.model.cluster import Cluster, EnvironmentValue

STARS = "*****"
_SECRET = re.compile(
    r"(?i)secret|passw|passphrase|token|credential|(access|account|api|private)[._-]?key|(^|[._-])(pwd|apikey)$"
)
"""As Spark's spark.redaction.regex, and what object stores and databases call theirs."""
_TOKEN = re.compile(r";token=([^;]+)")
_PLAIN = ("true", "false", "none", "null")
_SHORT = 8
"""Shorter secrets are hidden as whole words only: they may be a part of anything."""


def is_secret(key: str) -> bool:
    """Whether the value of a property of that name is nobody's business."""
    return _SECRET.search(key) is not None


def secret_properties(properties: Mapping[str, str]) -> Iterator[str]:
    """The values of those that are secret by their names."""
    return (value for key, value in properties.items() if is_secret(key))


def secrets_of(cluster: Cluster, environ: Mapping[str, str]) -> Iterator[str]:
    """Secret properties of a cluster, the options of its stores, and the token of its Spark Connect server."""
    yield from secret_properties(cluster.properties)
    yield from _values(cluster.storage_options, environ)
    if cluster.interfaces.registry:
        yield from _values(cluster.interfaces.registry.storage_options, environ)
    if cluster.interfaces.execute:
        yield from _TOKEN.findall(cluster.interfaces.execute.endpoint)


def hides(secrets: Iterable[str]) -> Callable[[str], str]:
    """Puts stars for the secrets, the longest first: one may be a part of another."""
    known = {one for one in secrets if one and one.lower() not in _PLAIN and not (one.isdigit() and len(one) < _SHORT)}
    if not known:
        return str
    found = re.compile("|".join(map(_pattern, sorted(known, key=len, reverse=True))))
    return lambda text: found.sub(STARS, text)


def _pattern(secret: str) -> str:
    text = re.escape(secret)
    return text if len(secret) >= _SHORT else rf"(?<!\w){text}(?!\w)"


def _values(option: Any, environ: Mapping[str, str]) -> Iterator[str]:
    if isinstance(option, Mapping):
        for inner in option.values():
            yield from _values(inner, environ)
    elif isinstance(option, EnvironmentValue):
        yield environ.get(option.env, "")
    elif isinstance(option, str):
        yield option
