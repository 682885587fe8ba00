"""Real paths by the kernel, against those of the standard library."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from falcon_assets.storage.files.local_files import real_path

NAMES = [
    "", "folder", "folder/file", "folder/none", "folder/none/below", "file/below", "link", "link/file", "link/none",
    "dangling", "dangling/below", "circle", "circle/below", "out", "out/x", "gone (deleted)", "gone (deleted)/x",
    "folder/../file", "..", "folder/", "link/", "folder//file", "./folder", "é/\udcff", "chain", "chain/file",
    "x" * 300, "folder/" + "x" * 300,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_it_is_that_of_the_standard_library(tmp_path: Path, name: str) -> None:
    for folder in ("folder", "gone (deleted)", "é"):
        (tmp_path / folder).mkdir()
    for file in ("folder/file", "file", "é/\udcff"):
        Path(os.fsencode(tmp_path / file).decode(errors="surrogateescape")).write_text("")
    links = {"link": "folder", "dangling": "nowhere", "circle": "circle", "out": "/etc", "chain": "link"}
    for link, target in links.items():
        (tmp_path / link).symlink_to(target)
    for root in (str(tmp_path), f"{tmp_path}/link/..", f"/proc/self/root{tmp_path}"):
        path = f"{root}/{name}"
        assert real_path(path) == os.path.realpath(path)


@pytest.mark.parametrize("path", ["/", "/proc/self", "/none", "relative", ""])
def test_at_the_root(path: str) -> None:
    assert real_path(path) == os.path.realpath(path)


def test_where_no_file_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError(24, "Too many open files")

    (tmp_path / "link").symlink_to("folder")
    monkeypatch.setattr(os, "open", refused)
    assert real_path(f"{tmp_path}/link/x") == f"{tmp_path}/folder/x"
