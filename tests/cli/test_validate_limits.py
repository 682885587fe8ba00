"""Files that nobody means as definitions: a sentence each, at once, in little memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.catalog.definition_files import FILES, write
from tests.processes import environ_with

MEGABYTES = 300
SECONDS = 5
LAUGHS = "\n".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}]" for n in range(1, 40))
CLUSTER = FILES["clusters.yaml"].partition("---")[0]


def text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content) and None  # type: ignore[return-value]


def linked(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def outside(path: Path) -> None:
    (path.parent.parent / "secret.yaml").write_text("password: hunter2\n")
    path.symlink_to("../secret.yaml")


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (os.mkfifo, "defs/f.yaml:1: it is not a plain file"),
    "endless_device": (
        linked("/dev/zero"),
        "defs/f.yaml:1: the link points outside the folder of the definitions: its target is not read",
    ),
    "link_to_a_file_outside": (
        outside,
        "defs/f.yaml:1: the link points outside the folder of the definitions: its target is not read",
    ),
    "link_to_nothing": (linked("nowhere.yaml"), "defs/f.yaml:1: the file cannot be read: No such file or directory"),
    "link_to_itself": (linked("f.yaml"), "defs/f.yaml:1: the file cannot be read: it is a link to itself"),
    "many_empty_documents_in_a_large_file": (
        text("---\n" * 1_250_000),
        "defs/f.yaml:1: the file has more than 1,000,000 bytes: split it",
    ),
    "many_empty_documents": (
        text("---\n" * 240_000),
        "defs/f.yaml:1: the file has more than 5,000 documents: split it",
    ),
    "comments": (text("# nothing\n" * 5_000_000), "defs/f.yaml:1: the file has more than 1,000,000 bytes: split it"),
    "a_long_text": (
        text(f"kind: cluster\nname: {'x' * 900_000}\n"),
        "defs/f.yaml:2: name: a text of 900,000 characters: 100,000 at most",
    ),
    "many_variables_in_a_path": (
        text(FILES["feeds.yaml"].replace("/raw/", f"/{'${cluster.name}' * 20_000}/")),
        "defs/f.yaml:7: locations.data: a text of 300,033 characters: 100,000 at most",
    ),
    "a_long_path": (
        text(FILES["feeds.yaml"].replace("/raw/", f"/{'${cluster.name}' * 2_000}/")),
        "defs/f.yaml:7: locations.data: a path of 30,033 characters: 4,096 at most",
    ),
    "many_unknown_variables": (
        text(FILES["feeds.yaml"].replace("/raw/", "/" + "".join(f"${{v{n}}}" for n in range(500)) + "/")),
        "unknown variable '${v9}' on cluster 'primary'",
    ),
    "many_unknown_keys": (
        text(CLUSTER + "".join(f"key{n}: 1\n" for n in range(60_000))),
        "unknown key 'key59'",
    ),
    "many_values": (
        text("kind: cluster\nname: x\ntags:\n" + "".join(f"  a{n}: b\n" for n in range(80_000))),
        "defs/f.yaml:1: interfaces: required key is missing",
    ),
    "many_wrong_documents": (text("kind: x\n---\n" * 4_900), "kind: unknown kind 'x'"),
    "nested": (text("[" * 900_000), "defs/f.yaml:1: not YAML: nested deeper than 64 levels"),
    "billion_laughs": (
        text(f"l0: &l0 [lol, lol]\n{LAUGHS}\n"),
        "defs/f.yaml:1: the document has more than 100,000 values, aliases written out",
    ),
    "no_characters": (text("\0" * 900_000), "defs/f.yaml:1: not YAML: control characters are not allowed"),
}


@pytest.mark.parametrize(("make", "sentence"), CASES.values(), ids=CASES)
def test_limits(tmp_path: Path, make: Callable[[Path], None], sentence: str) -> None:
    write(tmp_path / "defs", {"clusters.yaml": FILES["clusters.yaml"]})
    make(tmp_path / "defs" / "f.yaml")
    code, said, seconds, megabytes = validated(tmp_path)
    assert code == 1
    assert sentence in said
    assert "hunter2" not in said
    assert "Traceback" not in said
    assert seconds < SECONDS
    assert megabytes < MEGABYTES


LAUNCHER = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "w").write(f"{code} {used.ru_utime + used.ru_stime} {used.ru_maxrss}")
"""
"""A small process in between: what a child uses counts from the memory of the one that starts it."""


def validated(folder: Path) -> tuple[int, str, float, float]:
    """Exit code, what it says, seconds of CPU time and megabytes of ``falcon validate defs``."""
    command = [sys.executable, "-c", "from falcon_assets.surface.cli.main import main; main()", "validate", "defs"]
    launched = [sys.executable, "-S", "-c", LAUNCHER, str(folder / "used"), *command]
    with (folder / "said").open("wb") as said:
        subprocess.run(launched, cwd=folder, env=environ_with(), stdout=said, stderr=subprocess.STDOUT, check=True)
    code, seconds, peak = (folder / "used").read_text().split()
    # Kilobytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return int(code), (folder / "said").read_text(), float(seconds), int(peak) * unit / 1_000_000
