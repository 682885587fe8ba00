from __future__ import annotations

import stat
from pathlib import Path

import pytest

from falcon_assets.base.new_files import write_file


@pytest.mark.parametrize(
    ("there", "asked", "mode"), [(0o600, None, 0o600), (0o640, 0o644, 0o644), (0o664, None, 0o664)]
)
def test_who_may_read_a_file_may_read_what_replaces_it(
    tmp_path: Path, there: int, asked: int | None, mode: int
) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    path.chmod(there)
    write_file(path, "new", asked)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)
