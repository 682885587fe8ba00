"""Secrets of datasources, wherever somebody wrote them, are in nothing that is shown or recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import DatasourceError, InvalidDefinitionsError
from falcon_assets.features.datasources.access import access_to
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.secret_values import secrets_of_datasource
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml, datasource_yaml

SECRET = "hunter22"


def interfaces(endpoint: str = "postgresql://h/shop", **credential: Any) -> dict[str, Any]:
    return {"interfaces": {"readonly": {"endpoint": endpoint, "credential": credential}}}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a password in plain text": (
        interfaces(password=SECRET),
        "interfaces.readonly.credential.password: must be {env: NAME}, {file: PATH} or {encrypted: ...}: secrets do "
        "not stand in definitions",
    ),
    "a password below a misspelt key": (
        interfaces(password={"environment": SECRET}),
        "interfaces.readonly.credential.password: must be {env: NAME}, {file: PATH} or {encrypted: ...}: secrets do "
        "not stand in definitions",
    ),
    "a misspelt key": (
        interfaces(pasword=SECRET),
        "interfaces.readonly.credential.pasword: unknown key 'pasword' (did you mean 'password'?)",
    ),
    "a number": (
        interfaces(user=22227777),
        "interfaces.readonly.credential.user: must be a text, {env: NAME}, {file: PATH} or {encrypted: ...}",
    ),
    "a credential that is none": (
        {"interfaces": {"readonly": {"endpoint": "postgresql://h/shop", "credential": SECRET}}},
        "interfaces.readonly.credential: must be a mapping (key: value)",
    ),
    "a misspelt credential": (
        {"interfaces": {"readonly": {"endpoint": "postgresql://h/shop", "credentials": {"password": SECRET}}}},
        "interfaces.readonly.credentials: unknown key 'credentials' (did you mean 'credential'?)",
    ),
    "a password in the endpoint": (
        interfaces(f"postgresql://me:{SECRET}@h/shop"),
        "interfaces.readonly.endpoint: 'postgresql://me:*****@h/shop' must not have a password: write user and "
        "password as credential",
    ),
    "an option of the driver": (
        {"driver": {"sslpassword": [SECRET]}},
        "driver.sslpassword: must be a text, {env: NAME}, {file: PATH} or {encrypted: ...}",
    ),
    "options that are none": ({"driver": SECRET}, "driver: must be a mapping (key: value)"),
    "misspelt options": (
        {"drivers": {"sslmode": SECRET}},
        "drivers: unknown key 'drivers' (did you mean 'driver'?)",
    ),
}


@pytest.mark.parametrize(("declared", "message"), WRONG.values(), ids=WRONG)
def test_no_error_quotes_a_secret(tmp_path: Path, declared: dict[str, Any], message: str) -> None:
    (tmp_path / "a.yaml").write_text(datasource_yaml(**declared))
    with pytest.raises(InvalidDefinitionsError) as found:
        load_entities(tmp_path)
    assert [f"{one.key_path}: {one.message}" for one in found.value.problems] == [message]
    assert SECRET not in str(found.value) and "22227777" not in str(found.value)


def test_listings_and_recorded_versions_show_names_only(
    write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FALCON_WEBSERVER_URL", "")
    credential = {"user": "pat-the-user", "password": {"file": "/run/shop"}}
    driver = {"sslmode": "verify-full", "sslpassword": {"env": "SSL_SECRET"}}
    write_entities({"a.yaml": cluster_yaml() + datasource_yaml(**interfaces(**credential), driver=driver)})

    def call(*words: str) -> str:
        result = CliRunner().invoke(falcon, ["entity", *words], catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    call("touch", "shop")
    shown = {words: call(*words.split()) for words in ("show shop", "show shop --json", "history shop --json")}
    for words, text in shown.items():
        assert "/run/shop" in text and "SSL_SECRET" in text, words
        assert "pat-the-user" not in text and "verify-full" not in text, words
    definition = json.loads(shown["show shop --json"])["definition"]
    assert definition["driver"] == {"sslmode": "*****", "sslpassword": {"env": "SSL_SECRET"}}


def datasource(**declared: Any) -> Datasource:
    said = {"kind": "datasource", "name": "shop", "type": "postgresql", **interfaces(), **declared}
    return Datasource.model_validate(said)


def test_no_repr_shows_a_credential_or_an_option() -> None:
    one = datasource(**interfaces(user="pat-the-user"), driver={"sslmode": "verify-full"})
    assert "pat-the-user" not in repr(one) and "verify-full" not in repr(one)


def test_what_an_access_has_is_hidden_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token-of-the-shop\n")
    one = datasource(
        **interfaces(user="pat", password={"env": "SHOP"}, token={"file": "token"}), driver={"sslkey": {"env": "KEY"}}
    )
    environ = {"SHOP": "password-of-the-shop", "KEY": "key-of-the-shop", "FALCON_HOME": str(tmp_path)}
    access = access_to(one, environ, write=False)
    assert (access.password, access.token, access.driver) == (
        "password-of-the-shop",
        "token-of-the-shop",
        {"sslkey": "key-of-the-shop"},
    )
    assert "of-the-shop" not in repr(access)
    error = DatasourceError("it refuses password-of-the-shop, token-of-the-shop and key-of-the-shop")
    assert str(error) == "it refuses *****, ***** and *****"


def test_a_variable_that_is_not_set_is_a_sentence() -> None:
    one = datasource(**interfaces(password={"env": "SHOP"}))
    with pytest.raises(DatasourceError, match=r"^datasource 'shop' needs the environment variable SHOP, which is not"):
        access_to(one, {}, write=False)
    with pytest.raises(DatasourceError, match=r"^datasource 'shop' has no interface to write: declare interfaces"):
        access_to(one, {}, write=True)


def test_logs_hide_what_references_stand_for() -> None:
    one = datasource(**interfaces(password={"env": "SHOP"}), driver={"sslpassword": SECRET, "sslmode": "require"})
    assert list(secrets_of_datasource(one, lambda reference: f"value of {reference.label}")) == [
        "value of SHOP",
        SECRET,
    ]
