"""Secret values in definitions: :mod:`falcon_assets.base.texts` hides them in every text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.feed import Feed
from falcon_assets.model.reference import Reference, references_in

SECRET_KEY = "storage_options"  # noqa: S105 - the name of a key, not a secret
CREDENTIAL, DRIVER = "credential", "driver"
"""Keys of datasources."""
HIDDEN_KEYS = frozenset({SECRET_KEY, CREDENTIAL, DRIVER})
"""Keys below which no value is shown, except for the names in references."""
_SECRET = re.compile(
    r"(?i)secret|passw|passphrase|token|credential|(access|account|api|private)[._-]?key|(^|[._-])(pwd|apikey)$"
)
"""As Spark's spark.redaction.regex, and what object stores and databases call theirs."""
_HARMLESS = frozenset(
    {
        *("addressing_style", "account_name", "endpoint", "endpoint_url", "host", "port", "project", "protocol"),
        *("region", "region_name", "s3.endpoint", "s3.region", "signature_version", "type", "uri", "user", "warehouse"),
        *("endpoint_override", "webhdfs"),
    }
)
"""Options of stores that say where, and whose messages nobody could understand without."""
_TOKEN = re.compile(r";token=([^;]+)")
ValueOf: TypeAlias = Callable[[Reference], str]


def _unknown(_reference: Reference) -> str:
    return ""


def is_secret(key: str) -> bool:
    """Whether the value of a property of that name is nobody's business."""
    return _SECRET.search(key) is not None


def secret_properties(properties: Mapping[str, str]) -> Iterator[str]:
    """The values of those that are secret by their names."""
    return (value for key, value in properties.items() if is_secret(key))


def secrets_of(cluster: Cluster, value_of: ValueOf = _unknown) -> Iterator[str]:
    """Secret properties of a cluster, the options of its stores, and the token of its Spark Connect server."""
    yield from secret_properties(cluster.properties)
    yield from option_values(cluster.storage_options, value_of)
    if cluster.interfaces.registry:
        yield from option_values(cluster.interfaces.registry.storage_options, value_of)
    if cluster.interfaces.messaging:
        yield from option_values(cluster.interfaces.messaging.options, value_of)
    if cluster.interfaces.execute:
        yield from _TOKEN.findall(cluster.interfaces.execute.endpoint)


def secrets_of_feed(feed: Feed, value_of: ValueOf = _unknown) -> Iterator[str]:
    """Secret properties of a feed, secret options of its format, and the options of stores that it declares itself."""
    yield from secret_properties(feed.properties)
    yield from secret_properties(feed.options)
    for locations in (feed.locations, *(one.locations for one in feed.clusters)):
        if locations is not None and locations.storage_options:
            yield from option_values(locations.storage_options, value_of)


def secrets_of_datasource(datasource: Datasource, value_of: ValueOf = _unknown) -> Iterator[str]:
    """What references of a datasource stand for, and options of its driver that are secret by their names."""
    yield from (value_of(one) for _, one in references_in(datasource))
    yield from secret_properties({key: value for key, value in datasource.driver.items() if isinstance(value, str)})


def option_values(option: Any, value_of: ValueOf = _unknown) -> Iterator[str]:
    """The texts in an option of a store, and what ``value_of`` gives for references."""
    if isinstance(option, Mapping):
        for name, inner in option.items():
            if name not in _HARMLESS or isinstance(inner, Reference):
                yield from option_values(inner, value_of)
    elif isinstance(option, Reference):
        yield value_of(option)
    elif isinstance(option, str):
        yield option
