"""What is different where an Iceberg catalog is a REST service."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables import iceberg_services
from falcon_assets.storage.tables.table_store import TableStore, open_catalog
from tests.iceberg_rest import CLIENT, ENVIRON, SECRET, TOKEN, RestService
from tests.registries import Tables, endpoint_of

VALUES = ("2024-01-01",)


@pytest.fixture
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    made = Tables(endpoint_of(request, "rest"), tmp_path, keys=("ds",))
    made.make()
    return made


@pytest.mark.parametrize("options", [{"token": TOKEN}, {"credential": f"{CLIENT}:{SECRET}"}], ids=["token", "client"])
def test_who_may_looks_at_tables(rest_service: RestService, options: dict[str, str]) -> None:
    catalog = open_catalog("primary", f"iceberg+{rest_service.url}#lake", "file:///none", options)
    assert catalog.layout("default", "flights") is None
    assert catalog.endpoint == f"iceberg+{rest_service.url}"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "NotAuthorizedException: who are you?"),
        ({"token": "wrong"}, "NotAuthorizedException: who are you?"),
        ({"credential": "falcon:wrong"}, "invalid_client: nobody of that name"),
    ],
    ids=["nobody", "token", "client"],
)
def test_who_may_not_is_told_where_to_look(rest_service: RestService, options: dict[str, str], why: str) -> None:
    endpoint = f"iceberg+{rest_service.url}"
    with pytest.raises(StorageError) as raised:
        open_catalog("primary", f"{endpoint}#lake", "file:///none", options).layout("default", "flights")
    assert str(raised.value) == (
        f"cluster 'primary': {endpoint} refuses to look at table default.flights ({why}): check the storage_options of "
        "the registry"
    )


def test_a_service_that_never_answers_is_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_services, "_SECONDS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"iceberg+http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnreachableError, match=r"asked to look at table lake\.b: ReadTimeout$"):
            open_catalog("primary", endpoint, "file:///none", {"credential": "a:b"}).layout("lake", "b")


def test_a_variable_that_is_not_set_is_named(tables: Tables) -> None:
    with pytest.raises(StorageError, match="'credential' needs the environment variable CATALOG_CREDENTIAL, which is"):
        TableStore(tables.cluster, tables.home, {}).catalog.layout("default", tables.name)


def test_no_secret_is_in_what_is_shown_of_a_store(tables: Tables) -> None:
    shown = f"{tables.store!r} {vars(tables.store)} {tables.cluster!r} {tables.store.endpoint}"
    assert [one for one in (SECRET, TOKEN, *ENVIRON.values()) if one in shown] == []


@pytest.mark.parametrize("is_new", [True, False])
def test_what_was_done_though_the_service_failed_is_done_once(
    tables: Tables, rest_service: RestService, is_new: bool
) -> None:
    before = None if is_new else tables.land(VALUES, 1)
    rest_service.fails_after.append(500)
    now = tables.catalog.switch("default", tables.name, VALUES, tables.files(2, 3), {}, before)
    assert tables.there(*VALUES) == now
    assert now.files == 1
    rest_service.fails_after.append(502)
    tables.catalog.drop("default", tables.name, [now])
    assert tables.there(*VALUES) is None


@pytest.mark.parametrize("status", [409, 500, 504])
def test_what_was_not_done_is_tried_again(tables: Tables, rest_service: RestService, status: int) -> None:
    before = tables.land(VALUES, 1)
    rest_service.fails_before += [status, status]
    now = tables.catalog.switch("default", tables.name, VALUES, tables.files(2), {}, before)
    assert rest_service.fails_before == []
    assert tables.there(*VALUES) == now != before


def test_a_version_stays_where_nobody_knows_whether_it_was_published(tables: Tables, rest_service: RestService) -> None:
    """It may be the partition: readers would find that its files are gone."""
    target = OutputTarget(f"catalog:default:{tables.name}#ds={VALUES[0]}", None, format="parquet")
    rest_service.fails_after.append(503)
    with (
        pytest.raises(UnreachableError, match="does not answer"),
        TablePublication(tables.store, "daily", {"out": target}) as publication,
    ):
        place = Path(publication.staging("out"))
        Path(tables.files(1).removeprefix("file://")).rename(place)
        publication.commit("out")
    now = tables.there(*VALUES)
    assert now is not None
    assert [Path(one.removeprefix("file://")) for one in now.places] == list(place.iterdir())
    with TablePublication(tables.store, "daily", {"out": target}, grace=0):  # a day later it is found to be in use
        pass
    assert list(place.iterdir())
