"""A cluster on a real S3 server, whose credentials are encrypted in its definition."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from falcon_assets.base.texts import hidden
from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml
from tests.s3_server import KEY, SECRET, lake


def encrypted(key: str, value: str) -> dict[str, str]:
    done = CliRunner().invoke(falcon, ["secrets", "encrypt", "cluster", "lake", key], input=value)
    return {"encrypted": done.stdout.split('"')[1]}


def test_a_store_is_read_with_encrypted_credentials(
    tmp_path: Path, lake_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "defs"
    for name, value in {"FALCON_ENTITY_DEFS": str(root), "FALCON_MASTER_KEY_FILE": str(tmp_path / "key")}.items():
        monkeypatch.setenv(name, value)
    CliRunner().invoke(falcon, ["secrets", "keygen", str(tmp_path / "key")])
    options = {
        "key": encrypted("storage_options.key", KEY),
        "secret": encrypted("storage_options.secret", SECRET),
        "client_kwargs": {"endpoint_url": encrypted("storage_options.client_kwargs.endpoint_url", lake_url)},
    }
    (root / "a.yaml").write_text(cluster_yaml(**{**lake(lake_url), "storage_options": options}))
    cluster = load_entities(root).clusters["lake"]
    store = ClusterStore(cluster, tmp_path, os.environ)
    store.fs.pipe(store.path("/a"), b"there")
    assert store.fs.cat(store.path("/a")) == b"there"
    assert (store.fs.storage_options["key"], store.fs.storage_options["secret"]) == (KEY, SECRET)
    assert hidden(f"the store says {SECRET}") == "the store says *****"
    assert SECRET not in repr(cluster) + repr(store.cluster) + cluster.model_dump_json()
    monkeypatch.delenv("FALCON_MASTER_KEY_FILE")
    with pytest.raises(StorageError) as error:
        ClusterStore(cluster, tmp_path, os.environ)
    assert str(error.value) == (
        f"{root}/a.yaml:{position(root)}: storage_options.key: it is encrypted, and no master key is given: set "
        "FALCON_MASTER_KEY_FILE or FALCON_MASTER_KEY here and wherever Dagster runs"
    )


def position(root: Path) -> int:
    lines = (root / "a.yaml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == "key:")
