"""The version of an instance that is one partition or several."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.tables.catalog import Partition


def version_of(partitions: Sequence[Partition]) -> DataVersion:
    version = partitions[0].version
    if len(partitions) > 1:
        text = repr(sorted((one.values, one.version) for one in partitions))
        version = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return DataVersion(version, sum(one.files for one in partitions), sum(one.bytes for one in partitions))
