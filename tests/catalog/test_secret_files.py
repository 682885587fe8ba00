"""``{file: PATH}``: read when it is used, from a file that is there for one secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from falcon_assets.base.texts import hidden
from falcon_assets.catalog.references import known_value, value_of
from falcon_assets.doctor.environment import judge_files
from falcon_assets.errors import SecretError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.notification import Receiver
from falcon_assets.model.reference import FileValue, Reference

SECRET = "hunter22-of-a-file"


def value(file: Path | str, home: Path, **environ: str) -> str | None:
    return value_of(FileValue(file=str(file)), {"FALCON_HOME": str(home), **environ})


@pytest.mark.parametrize(
    ("content", "read"),
    [(SECRET, SECRET), (f"{SECRET}\n", SECRET), (f"{SECRET}\r\n", SECRET), (f" {SECRET}\n\n", f" {SECRET}\n")],
    ids=["no line break", "one", "of Windows", "one of two"],
)
def test_a_line_break_at_its_end_is_no_part_of_the_secret(tmp_path: Path, content: str, read: str) -> None:
    (tmp_path / "shop").write_bytes(content.encode())
    assert value("shop", tmp_path) == value(tmp_path / "shop", Path("/nowhere")) == read
    assert SECRET not in hidden(f"the password is {SECRET}!")


def test_it_is_read_each_time(tmp_path: Path) -> None:
    for said in ("first-secret", "second-secret"):
        (tmp_path / "shop").write_text(said)
        assert value("shop", tmp_path) == said


def test_links_are_followed_as_kubernetes_makes_them(tmp_path: Path) -> None:
    (tmp_path / "..2013").mkdir()
    (tmp_path / "..2013" / "password").write_text(SECRET)
    (tmp_path / "..data").symlink_to("..2013")
    (tmp_path / "password").symlink_to("..data/password")
    assert value("password", tmp_path) == SECRET


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    for name, content in (("empty", b"\n"), ("long", b"x" * 100_001), ("bytes", b"\xff\xfe"), ("master", b"key")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("master")
    wrong = {
        "none": "cannot be read: No such file or directory",
        "empty": "is empty",
        "long": "has more than 100,000 bytes: name the file of one secret",
        "bytes": "is no text in UTF-8",
        "pipe": "is no regular file",
        "folder": "cannot be read: Is a directory",
        "link": "is in FALCON_MASTER_KEY_FILE, which is for falcon only: name another file",
    }
    for name, why in wrong.items():
        reference = FileValue(file=str(tmp_path / name))
        with pytest.raises(SecretError) as found:
            value(reference.file, tmp_path, FALCON_MASTER_KEY_FILE=str(tmp_path / "master"))
        assert str(found.value) == f"{tmp_path / name} {why}"
    assert known_value(FileValue(file="none"), {"FALCON_HOME": str(tmp_path)}) == ""


@pytest.mark.parametrize("path", ["../x", "a/../../x", "~/x", "/run/../etc/shadow"])
def test_paths_that_lead_out(path: str) -> None:
    with pytest.raises(ValidationError, match="must be absolute, or the path of a file below FALCON_HOME"):
        FileValue(file=path)


def test_wherever_a_variable_can_stand_a_file_can() -> None:
    said = {"file": "/run/secrets/x"}
    assert TypeAdapter(Reference).validate_python(said) == FileValue(file="/run/secrets/x")
    assert Receiver.model_validate({"url": said}).url.label == "/run/secrets/x"
    interfaces = {"write": {"endpoint": "s3://x"}, "execute": {"endpoint": "local"}}
    cluster = {"kind": "cluster", "name": "a", "interfaces": interfaces, "storage_options": {"secret": said}}
    assert Cluster.model_validate(cluster).storage_options == {"secret": FileValue(file="/run/secrets/x")}


def test_the_doctor_warns_of_files_that_others_can_read(tmp_path: Path) -> None:
    named = {"shop": FileValue(file="shop"), "gone": FileValue(file="gone")}

    def said(*names: str) -> list[tuple[str, str]]:
        found = judge_files({name: named[name] for name in names}, {"FALCON_HOME": str(tmp_path)})
        return [(one.status.value, one.text.replace(str(tmp_path), "HOME")) for one in found]

    (tmp_path / "shop").write_text(SECRET)
    (tmp_path / "shop").chmod(0o640)
    assert said("shop", "gone") == [
        ("warning", "HOME/shop holds a secret, and other users can read it"),
        ("problem", "HOME/gone cannot be read: No such file or directory"),
    ]
    (tmp_path / "shop").chmod(0o600)
    assert said("shop") == [("ok", "1 file with secrets can be read by their owner only")]
    assert said() == []
