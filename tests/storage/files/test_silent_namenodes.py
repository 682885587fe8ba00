"""What can be told of namenodes that cannot be asked: no HDFS is needed for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.probing import probe_reading
from tests.builders import make_cluster


def store_on(endpoint: str, home: Path, **options: Any) -> ClusterStore:
    interfaces = {"write": {"endpoint": endpoint}, "execute": {"endpoint": "local[2]"}}
    return ClusterStore(make_cluster(interfaces=interfaces, storage_options=options), home, {})


def test_a_name_that_no_machine_has_may_be_a_logical_one(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as raised:
        probe_reading(store_on("hdfs://nameservice1.invalid/data", tmp_path, user="etl"))
    assert str(raised.value) == (
        "cluster 'primary': cannot list hdfs://nameservice1.invalid: the namenode at http://nameservice1.invalid:9870 "
        "cannot be reached: no machine has that name; if it stands for several namenodes, say their addresses in "
        'storage_options: webhdfs: "http://one:9870,http://other:9870"'
    )


def test_a_namenode_that_wants_kerberos_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> requests.Response:
        answer = requests.Response()
        answer.status_code = 401
        answer.headers["WWW-Authenticate"] = "Negotiate"
        return answer

    monkeypatch.setattr(requests.Session, "request", refuse)
    with pytest.raises(StorageError, match="the namenode wants Kerberos: install requests-kerberos, declare `kerberos"):
        probe_reading(store_on("hdfs://namenode/data", tmp_path, user="etl"))
