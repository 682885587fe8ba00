"""``falcon secrets``: keys are made and rotated, values encrypted, and nothing of it shows a secret."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from falcon_assets.catalog.encryption import CUSTOMER_KEYS
from falcon_assets.catalog.references import value_of
from falcon_assets.catalog.store import load_entities
from falcon_assets.doctor.all_checks import CHECKS
from falcon_assets.doctor.diagnosis import CheckContext, Severity
from falcon_assets.errors import SecretError
from falcon_assets.features.messaging.broker import NotPublishedError, broker_of
from falcon_assets.model.reference import EncryptedValue, EnvironmentValue, references_in
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml
from tests.operations.rows import NOW
from tests.receivers import web_hook

SECRET = "hunter2: {not} YAML\n'\"é"
KEYS = "FALCON_MASTER_KEY_FILE"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty tree of definitions, with a master key."""
    made = tmp_path / "defs"
    made.mkdir()
    for name, value in {
        "FALCON_ENTITY_DEFS": str(made),
        "FALCON_HOME": str(tmp_path / "home"),
        "FALCON_WEBSERVER_URL": "",
        KEYS: "one.key",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    assert call("secrets", "keygen", "one.key").exit_code == 0
    return made


def call(*arguments: str, value: str | bytes = "") -> Result:
    return CliRunner().invoke(falcon, arguments, input=value)


def encrypted(
    name: str = "lake", key: str = "storage_options.secret", value: str = SECRET, kind: str = "cluster"
) -> str:
    done = call("secrets", "encrypt", kind, name, key, value=value)
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def secret_of(name: str = "lake") -> str | None:
    """The secret of a cluster, as its store reads it."""
    cluster = load_entities(load_settings().entity_defs).clusters[name]
    ((_, reference),) = references_in(cluster)
    return value_of(reference, os.environ)


def test_a_master_key_is_for_its_owner_and_never_replaced(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.key"
    before = file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = call("secrets", "keygen", str(file))
    assert (again.exit_code, str(again.exception)) == (
        1,
        f"{file} exists, and a key that is replaced is lost: choose another name",
    )
    assert file.read_bytes() == before
    link = tmp_path / "link.key"
    link.symlink_to(tmp_path / "elsewhere")
    assert call("secrets", "keygen", str(link)).exit_code == 1
    assert not (tmp_path / "elsewhere").exists()
    inside = call("secrets", "keygen", str(root / "x.key"))
    assert "is among the definitions" in str(inside.exception)
    made = call("secrets", "keygen", "two.key", "--json")
    assert (tmp_path / "two.key").read_text().strip() not in made.output


def test_what_is_encrypted_is_read_where_it_stands(root: Path) -> None:
    (root / "a.yaml").write_text(cluster_yaml("lake") + f"storage_options:\n  secret: {encrypted()}\n")
    assert call("validate").output == "1 cluster, 0 feeds, 0 processes: no problems\n"
    assert secret_of() == SECRET
    assert stat.S_IMODE((root / CUSTOMER_KEYS).stat().st_mode) & 0o111 == 0
    for shown in (
        call("entity", "show", "lake", "--json"),
        call("secrets", "check", "--json"),
        call("secrets", "check"),
    ):
        assert shown.exit_code == 0, shown.output
        assert "hunter2" not in shown.output
    assert "v1:" not in call("entity", "show", "lake", "--json").output


def test_a_value_that_is_moved_is_told_with_its_line(root: Path) -> None:
    token = encrypted()
    (root / "a.yaml").write_text(cluster_yaml("lake") + f"storage_options: {{secret: {token}}}\n")
    moved = cluster_yaml("pond") + f"storage_options:\n  secret: {token}\n"
    (root / "b.yaml").write_text(moved)
    with pytest.raises(SecretError) as error:
        secret_of("pond")
    line = moved.splitlines().index(f"  secret: {token}") + 1
    assert str(error.value) == (
        f"defs/b.yaml:{line}: storage_options.secret: it was encrypted for another place, or it is damaged: encrypt "
        "the value again: falcon secrets encrypt cluster pond storage_options.secret"
    )
    assert secret_of("lake") == SECRET
    checked = call("secrets", "check", "--json")
    assert checked.exit_code == 1
    assert [bool(one["problem"]) for one in json.loads(checked.output)["secrets"]] == [False, True]
    found = [one for one in CHECKS["secrets"](CheckContext(load_settings(), NOW)) if one.status is Severity.PROBLEM]
    assert [one.text for one in found] == [str(error.value)]


def test_what_is_no_encrypted_value_is_a_problem_of_the_definition(root: Path) -> None:
    (root / "a.yaml").write_text(cluster_yaml("lake") + "storage_options:\n  secret: {encrypted: hunter2}\n")
    said = call("validate")
    assert said.exit_code == 1
    assert "storage_options.secret: is not what falcon secrets encrypt prints" in said.output
    assert "hunter2" not in said.output


@pytest.mark.parametrize(
    ("arguments", "value", "said"),
    [
        (
            ("cluster", "lake", "storage_option.key"),
            "x",
            "unknown key 'storage_option' (did you mean 'storage_options'?)",
        ),
        (("cluster", "a b", "storage_options.key"), "x", "'a b' is not the name of an entity"),
        (("cluster", "lake", "storage_options.key"), "", "the value is empty"),
        (
            ("cluster", "lake", "storage_options.key"),
            b"\xff",
            "the value is not UTF-8: encode it, as base64 for example",
        ),
    ],
    ids=["key", "name", "empty", "bytes"],
)
def test_what_cannot_be_encrypted(root: Path, arguments: tuple[str, ...], value: str | bytes, said: str) -> None:
    done = call("secrets", "encrypt", *arguments, value=value)
    assert (done.exit_code, str(done.exception)) == (1, said)


def test_nothing_is_encrypted_without_a_master_key(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEYS)
    done = call("secrets", "encrypt", "cluster", "lake", "storage_options.key", value="x")
    assert str(done.exception) == (
        "no master key is given: set FALCON_MASTER_KEY_FILE or FALCON_MASTER_KEY here and wherever Dagster runs; "
        "falcon secrets keygen FILE makes one"
    )
    assert not (root / CUSTOMER_KEYS).exists()


def test_master_keys_rotate_without_downtime(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.yaml").write_text(cluster_yaml("lake") + f"storage_options: {{secret: {encrypted()}}}\n")
    text = (root / "a.yaml").read_text()
    call("secrets", "keygen", "two.key")
    monkeypatch.setenv(KEYS, "two.key")
    with pytest.raises(SecretError, match="it needs the master key"):
        secret_of()
    assert "needs the master key" in str(call("secrets", "rotate").exception)
    for given in ("two.key,one.key", "one.key,two.key"):
        monkeypatch.setenv(KEYS, given)
        assert secret_of() == SECRET
    monkeypatch.setenv(KEYS, "two.key,one.key")
    tried, before = call("secrets", "rotate", "--dry-run"), (root / CUSTOMER_KEYS).read_bytes()
    assert "would be wrapped" in tried.output
    done = call("secrets", "rotate", "--reason", "it is old")
    assert done.exit_code == 0, done.output
    assert before != (root / CUSTOMER_KEYS).read_bytes()
    for given in ("two.key,one.key", "two.key"):
        monkeypatch.setenv(KEYS, given)
        assert secret_of() == SECRET
    monkeypatch.setenv(KEYS, "one.key")
    with pytest.raises(SecretError, match="it needs the master key"):
        secret_of()
    assert (root / "a.yaml").read_text() == text


def test_values_are_encrypted_anew_and_the_former_key_stays_once_more(root: Path) -> None:
    comment = "# Kept, with its € and 'quotes'\r\n"
    text = comment + cluster_yaml("lake").replace("\n", "\r\n")
    text += f"storage_options:\r\n  secret:   {encrypted()}   # of the lake\r\n"
    text += "  config_kwargs:\r\n    proxy: >-\r\n      x\r\n"
    raw = b"\xef\xbb\xbf" + (text + cluster_yaml("pond")).encode()
    (root / "a.yaml").write_bytes(raw)
    reference = dict(references_in(load_entities(root).clusters["lake"]))["storage_options", "secret"]
    first = call("secrets", "rotate", "--values", "--json")
    assert first.exit_code == 0, first.output
    said = json.loads(first.output)
    assert (said["values"], said["files"], said["removed"]) == (1, ["defs/a.yaml"], [])
    assert secret_of() == SECRET
    assert value_of(reference, os.environ) == SECRET  # of a process that has read the former text
    after = (root / "a.yaml").read_bytes()
    old = reference.encrypted.encode() if isinstance(reference, EncryptedValue) else b""
    (new,) = {one.split(b'"')[0] for one in after.split(b'encrypted: "')[1:]}
    assert after.replace(new, old) == raw
    again = json.loads(call("secrets", "rotate", "--json").output)
    assert (len(again["kept"]), len(again["removed"])) == (1, 1)
    assert secret_of() == SECRET


def test_a_file_that_cannot_be_rewritten_is_left_alone(root: Path) -> None:
    text = cluster_yaml("lake") + f"storage_options:\n  secret: &one {encrypted()}\n  key: *one\n"
    (root / "a.yaml").write_text(text)
    keys = (root / CUSTOMER_KEYS).read_bytes()
    done = call("secrets", "rotate", "--values")
    assert "defs/a.yaml:" in str(done.exception) and "storage_options.key: it was encrypted" in str(done.exception)
    assert (root / "a.yaml").read_text() == text
    assert (root / CUSTOMER_KEYS).read_bytes() == keys


def test_the_value_is_asked_for_where_a_person_types_it(root: Path) -> None:
    master, slave = pty.openpty()
    program = "from falcon_assets.surface.cli.main import program; program()"
    command = [sys.executable, "-c", program, "secrets", "encrypt", "cluster", "lake", "storage_options.secret"]
    with subprocess.Popen(
        command, stdin=slave, stdout=subprocess.PIPE, stderr=slave, start_new_session=True
    ) as process:
        os.close(slave)
        seen = b""
        for _ in range(2):
            while not seen.endswith(b": "):
                seen += os.read(master, 100)
            os.write(master, b"hunter2\n")
            seen += b"."
        out, _ = process.communicate(timeout=60)
    os.close(master)
    assert process.returncode == 0
    (root / "a.yaml").write_text(cluster_yaml("lake") + f"storage_options: {{secret: {out.decode().strip()}}}\n")
    assert secret_of() == "hunter2"
    assert b"hunter2" not in seen


def test_receivers_of_notifications_are_read_where_they_stand(root: Path) -> None:
    process = """---
kind: process
name: hourly
frequency: hours(1)
clusters: [{name: lake, validity: {start: 2013-01-01T00:00Z, end: "2013-01-02T00:00Z"}}]
workflow: {engine: spark-sql, path: nothing.sql}
notification: {on: [FAILED], to: [{url: %s}]}
"""
    (root / "nothing.sql").write_text("SELECT 1")
    with web_hook() as hook:
        url = encrypted("hourly", "notification.to.0.url", f"json://127.0.0.1:{hook.port}/hushhush", kind="process")
        (root / "a.yaml").write_text(cluster_yaml("lake") + process % url)
        done = call("notification", "test", "hourly")
        assert done.exit_code == 0, done.output
        assert "process hourly notification.to.0.url" in done.output
        assert "hushhush" not in done.output
        assert len(hook.messages) == 1
    checked = [*CHECKS["receivers"](CheckContext(load_settings(), NOW))]
    assert [one.text for one in checked] == ["apprise knows the URLs of: process hourly notification.to.0.url"]


def test_brokers_take_encrypted_values(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "interfaces.messaging.options.Authorization"
    options = {"Authorization": {"encrypted": encrypted("lake", key).split('"')[1]}}
    messaging = {"endpoint": "https://127.0.0.1:9/x", "options": options}
    interfaces = {"write": {"endpoint": "data/lake"}, "execute": {"endpoint": "local[1]"}, "messaging": messaging}
    (root / "a.yaml").write_text(cluster_yaml("lake", interfaces=interfaces))
    declared = load_entities(root).clusters["lake"].interfaces.messaging
    assert declared is not None
    assert broker_of(declared, os.environ) is not None
    monkeypatch.delenv(KEYS)
    with pytest.raises(NotPublishedError) as error:
        broker_of(declared, os.environ)
    assert str(error.value).startswith(f"defs/a.yaml:12: {key}: it is encrypted, and no master key is given: set")


def test_a_master_key_is_no_value_of_a_definition(root: Path) -> None:
    environ = {**os.environ, "FALCON_MASTER_KEY": "hunter2"}
    with pytest.raises(SecretError, match="FALCON_MASTER_KEY is for falcon only: name another variable"):
        value_of(EnvironmentValue(env="FALCON_MASTER_KEY"), environ)


def test_two_first_values_at_once_share_one_customer_key(root: Path) -> None:
    program = "from falcon_assets.surface.cli.main import program; program()"
    command = [sys.executable, "-c", program, "secrets", "encrypt", "cluster", "lake"]
    (root.parent / "value").write_text("hunter2")
    both = []
    for name in ("a", "b"):
        with (root.parent / "value").open() as value:
            words = [*command, f"storage_options.{name}"]
            both.append(subprocess.Popen(words, stdin=value, stdout=subprocess.PIPE, text=True))
    tokens = [one.communicate(timeout=120)[0].strip() for one in both]
    (root / "a.yaml").write_text(cluster_yaml("lake") + f"storage_options: {{a: {tokens[0]}, b: {tokens[1]}}}\n")
    assert call("secrets", "check").exit_code == 0
    assert len(json.loads((root / CUSTOMER_KEYS).read_text())["keys"]) == 1
