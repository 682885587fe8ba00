"""Encrypted values: they open at their place, with the keys of their location, and not otherwise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.catalog.encryption import CUSTOMER_KEYS, CustomerKeys, MasterKey, Sealed, master_keys, new_master_key
from falcon_assets.errors import SecretError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.reference import EncryptedValue, encrypted_in
from falcon_assets.settings import MasterKeySources, load_settings

MASTER = [MasterKey.parse(new_master_key(), "here")]
KEYS = CustomerKeys(Path("defs", CUSTOMER_KEYS), {}).with_new(MASTER)
PLACE = "cluster lake storage_options.secret"
ELSEWHERE = "it was encrypted for another place, or it is damaged: encrypt the value again: falcon secrets encrypt "
TOKEN = KEYS.encrypt("hunter2", PLACE, MASTER)


def why(text: str, place: str = PLACE, keys: CustomerKeys = KEYS, masters: list[MasterKey] = MASTER) -> str:
    with pytest.raises(SecretError) as error:
        keys.decrypt(text, place, masters)
    return str(error.value)


@given(st.text(min_size=1), st.text(st.characters(categories=["L", "N"]), min_size=1))
def test_a_value_opens_at_its_place_only(value: str, name: str) -> None:
    place, other = f"cluster {name} x", f"cluster {name}2 x"
    text = KEYS.encrypt(value.encode(errors="replace").decode(), place, MASTER)
    assert KEYS.decrypt(text, place, MASTER) == value.encode(errors="replace").decode()
    assert why(text, other) == f"{ELSEWHERE}{other}"


@given(st.integers(0, len(TOKEN) - 1), st.integers(0, 6))
def test_no_bit_can_change(at: int, bit: int) -> None:
    changed = TOKEN[:at] + chr(ord(TOKEN[at]) ^ (1 << bit)) + TOKEN[at + 1 :]
    assert "hunter2" not in why(changed)


@given(st.integers(0, len(TOKEN) - 1))
def test_nothing_can_be_cut_off(length: int) -> None:
    why(TOKEN[:length])
    why(TOKEN[length + 1 :] or "x")


def test_one_value_looks_different_each_time() -> None:
    assert KEYS.encrypt("hunter2", PLACE, MASTER) != TOKEN


def test_what_is_no_token_says_how_to_make_one() -> None:
    said = f"it is not what falcon secrets encrypt prints: encrypt the value again: falcon secrets encrypt {PLACE}"
    assert why("hunter2") == why(TOKEN + "=") == said


def test_values_of_two_locations_do_not_open_in_each_other() -> None:
    others = [MasterKey.parse(new_master_key(), "there")]
    keys = CustomerKeys(Path("there", CUSTOMER_KEYS), {}).with_new(others)
    id_ = Sealed.parse(TOKEN).key  # type: ignore[union-attr]
    assert why(TOKEN, keys=keys, masters=others) == (
        f"it is encrypted with the customer key {id_}, which is not in there/{CUSTOMER_KEYS}"
    )
    same_id = CustomerKeys(keys.path, {id_: keys.wrapped[keys.current]})
    assert why(TOKEN, keys=same_id, masters=others) == (
        f"there/{CUSTOMER_KEYS} is damaged: restore it from where the definitions are kept"
    )


def test_a_wrong_or_missing_master_key_says_what_to_give() -> None:
    other = MasterKey.parse(new_master_key(), "there")
    give = "set FALCON_MASTER_KEY_FILE or FALCON_MASTER_KEY here and wherever Dagster runs"
    assert why(TOKEN, masters=[]) == f"it is encrypted, and no master key is given: {give}"
    assert why(TOKEN, masters=[other]) == (
        f"it needs the master key {MASTER[0].id}, and another one is given ({other.id}): {give}, the old and the new "
        "one during a rotation"
    )


def test_both_master_keys_open_during_a_rotation() -> None:
    new = MasterKey.parse(new_master_key(), "new")
    after = KEYS.wrapped_anew([new, *MASTER], KEYS.wrapped)
    for keys in (KEYS, after):
        assert keys.decrypt(TOKEN, PLACE, [new, *MASTER]) == keys.decrypt(TOKEN, PLACE, [*MASTER, new]) == "hunter2"
    assert after.decrypt(TOKEN, PLACE, [new]) == "hunter2"
    assert "needs the master key" in why(TOKEN, keys=after)


def test_master_keys_are_never_shown() -> None:
    (text,) = {new_master_key()}
    key = MasterKey.parse(text, "here")
    assert text not in repr(key) and str(key.raw) not in repr(key)
    for wrong in (text[:-1], text + "A", "hunter2hunter2", "", "é" * 43):
        with pytest.raises(SecretError) as error:
            MasterKey.parse(wrong, "FALCON_MASTER_KEY")
        assert str(error.value) == "FALCON_MASTER_KEY holds no master key: falcon secrets keygen FILE makes one"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604, 0o601])
def test_a_key_file_that_is_open_to_others_is_not_used(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key"
    file.write_text(new_master_key())
    file.chmod(mode)
    with pytest.raises(SecretError, match="is open to other users, and is not used: chmod 600"):
        master_keys(MasterKeySources((), (file,)))
    file.chmod(0o400)
    both = {"FALCON_MASTER_KEY_FILE": f"{file}, {file}", "FALCON_MASTER_KEY": new_master_key()}
    assert len(master_keys(load_settings(both).master_keys)) == 3
    assert both["FALCON_MASTER_KEY"] not in repr(load_settings(both))


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_a_key_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "key"
    if kind == "folder":
        file.mkdir(0o700)
    if kind == "pipe":
        os.mkfifo(file, 0o600)
    with pytest.raises(SecretError, match=f"^FALCON_MASTER_KEY_FILE: {file} "):
        master_keys(MasterKeySources((), (file,)))


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", '{"keys": []}', '{"keys": [{"id": "a"}]}', '{"keys": 1}'),
        *('{"keys": [{"id": "a", "wrapped": "x"}]}', "[" * 100_000),
    ],
)
def test_a_damaged_file_of_customer_keys_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / CUSTOMER_KEYS).write_text(content)
    with pytest.raises(SecretError, match=r"is damaged: restore it from where the definitions are kept$"):
        CustomerKeys.read(tmp_path)


def test_customer_keys_are_kept_wrapped(tmp_path: Path) -> None:
    (tmp_path / CUSTOMER_KEYS).write_bytes(KEYS.content())
    assert CustomerKeys.read(tmp_path).wrapped == KEYS.wrapped
    assert [*json.loads(KEYS.content())["keys"][0]] == ["id", "wrapped"]


def test_values_know_their_place() -> None:
    value = {"encrypted": TOKEN}
    options = {"secret": value, "config_kwargs": {"proxy": value}}
    cluster = {
        "kind": "cluster",
        "name": "lake",
        "interfaces": {
            "write": {"endpoint": "s3://lake"},
            "execute": {"endpoint": "local[1]"},
            "messaging": {"endpoint": "kafka://h:1/t", "options": {"sasl.password": value}},
        },
        "storage_options": options,
    }
    found = Cluster.model_validate(cluster)
    assert isinstance(secret := found.storage_options["secret"], EncryptedValue)
    assert (secret.place, str(secret)) == (PLACE, f"the encrypted value of {PLACE}")
    assert TOKEN not in str(secret)
    assert {place for _, place, _ in encrypted_in(cluster)} == {
        PLACE,
        "cluster lake storage_options.config_kwargs.proxy",
        "cluster lake interfaces.messaging.options.sasl.password",
    }
    assert found.model_copy(deep=True) == Cluster.model_validate(found.model_dump(by_alias=True)) == found
    items = {"kind": "feed", "name": "f", "clusters": [{"name": "lake", "x": value}], "to": [{"url": value}]}
    assert {place for _, place, _ in encrypted_in(items)} == {"feed f clusters.lake.x", "feed f to.0.url"}
