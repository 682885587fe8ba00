"""A storage of ours, for tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy

from falcon_assets.history.dagster_internals.storage import PooledStorage


class _Stored(PooledStorage):
    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> PooledStorage:
        raise AssertionError("no dagster.yaml declares it")


def stored(engine: sqlalchemy.Engine, **computed: Collection[str]) -> PooledStorage:
    """On that engine, with those keys of dynamic partitions."""
    return _Stored(engine, computed.get, None, make_tables=False)
