"""A store that answers and refuses is told from one that does not answer, in whatever words its driver says it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained, explained, is_about_path, refuses_credentials
from falcon_assets.storage.probing import probe_reading
from tests.builders import make_cluster

REFUSES = "the store refuses access with these credentials: check them in storage_options"


class Answered(Exception):
    """What a driver makes of an answer."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("with a signature that nobody may see")
        self.__dict__.update(attributes)


class AuthenticationException(Exception):
    """As that of paramiko is called."""


def caused(error: Exception) -> Exception:
    outer = RuntimeError("it did not work")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    "error",
    [
        PermissionError("Access Denied"),
        OSError("Forbidden: https://storage.googleapis.com/..."),
        Answered(status_code=403),
        Answered(code=401),
        Answered(code="403"),
        Answered(response=SimpleNamespace(status_code=401)),
        AuthenticationException("Authentication failed."),
        caused(Answered(status=403)),
    ],
    ids=repr,
)
def test_a_refusal_is_an_answer(error: Exception) -> None:
    with pytest.raises(StorageError) as told, driver_explained("lake", "list /raw"):
        raise error
    assert str(told.value).startswith(f"cluster 'lake': cannot list /raw: {REFUSES}")
    assert not isinstance(told.value, UnreachableError)
    assert refuses_credentials(told.value)
    assert is_about_path(told.value)  # another path may well be open to them


@pytest.mark.parametrize("error", [Answered(status_code=500), ValueError("403"), caused(TimeoutError())], ids=repr)
def test_what_else_goes_wrong_is_no_refusal(error: Exception) -> None:
    with pytest.raises(UnreachableError) as told, driver_explained("lake", "list /raw"):
        raise error
    assert not refuses_credentials(told.value)


def test_a_folder_of_another_user_has_nothing_to_do_with_credentials() -> None:
    with pytest.raises(StorageError, match="permission denied") as told, explained("lake", "list /raw"):
        raise PermissionError(13, "Permission denied", "/raw")
    assert not refuses_credentials(told.value)
    assert is_about_path(told.value)


@pytest.mark.soak
def test_azure_refuses_a_wrong_key(abfs: dict[str, Any], tmp_path: Path) -> None:
    text = str(abfs["connection_string"])
    wrong = {"connection_string": text.replace("Eby8", "Eby9")}
    cluster = make_cluster(
        interfaces={"write": {"endpoint": "abfs://lake/data"}, "execute": {"endpoint": "local[1]"}},
        storage_options=wrong,
    )
    with pytest.raises(StorageError, match=REFUSES) as told:
        probe_reading(ClusterStore(cluster, tmp_path, {}))
    assert refuses_credentials(told.value)
