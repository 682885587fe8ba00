"""Which tests ``make test-changed`` runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.changed import LOADED, READS_ALL, ROOT, changed_since, chosen, imports

FILES = {
    "falcon_assets/__init__.py": "",
    "falcon_assets/base.py": "",
    "falcon_assets/rules.py": "from falcon_assets import base",
    "falcon_assets/alone.py": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "import falcon_assets.rules",
    "tests/rules/test_rules.py": "def test_it():\n    import falcon_assets.rules",
    "tests/base/conftest.py": "from falcon_assets.base import one",
    "tests/base/test_base.py": "",
    "tests/docs/test_pages.py": "",
}
ALL = ["base/test_base", "docs/test_pages", "rules/test_rules"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param("falcon_assets/rules.py", ["rules/test_rules"], id="imported"),
        pytest.param(
            "falcon_assets/base.py", ["base/test_base", "rules/test_rules"], id="imported by what is imported"
        ),
        pytest.param("tests/base/conftest.py", ["base/test_base"], id="fixtures of a folder"),
        pytest.param("tests/rules/test_rules.py", ["rules/test_rules"], id="the test itself"),
        pytest.param("tests/rules/recorded.json", ["rules/test_rules"], id="data beside it"),
        pytest.param("docs/guide.md", ["docs/test_pages"], id="a page"),
        pytest.param("CHANGELOG.md", [], id="the changelog"),
        pytest.param("tests/rules/test_gone.py", [], id="a test that is gone"),
        pytest.param("tests/conftest.py", ALL, id="fixtures of all"),
        pytest.param("falcon_assets/alone.py", ALL, id="nobody is known to import it"),
        pytest.param("falcon_assets/gone.py", ALL, id="a module that is gone"),
        pytest.param("pyproject.toml", ALL, id="no module"),
    ],
)
def test_what_a_change_reaches(checkout: Path, changed: str, expected: list[str]) -> None:
    found = chosen(imports(checkout), {Path(changed)})
    assert [path.relative_to("tests").with_suffix("").as_posix() for path in found] == expected


def test_all_that_differs_is_found(checkout: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=checkout, check=True)

    git("init", "--quiet", "--initial-branch=main")
    git("add", ".")
    git("commit", "--quiet", "--message=first")
    git("switch", "--quiet", "--create=mine")
    (checkout / "falcon_assets/base.py").write_text("one = 1")
    git("commit", "--quiet", "--all", "--message=second")
    git("mv", "falcon_assets/alone.py", "falcon_assets/moved.py")
    (checkout / "falcon_assets/rules.py").write_text("one = 1")
    (checkout / "falcon_assets/new.py").touch()
    names = ("alone", "base", "moved", "new", "rules")
    assert changed_since(checkout, "main") == {Path(f"falcon_assets/{name}.py") for name in names}


def test_what_is_loaded_by_name_is_there() -> None:
    assert [
        (file, loaded) for file, loaded in LOADED.items() if not (ROOT / file).is_file() or not [*ROOT.glob(loaded)]
    ] == []
    reached = chosen(imports(ROOT), {Path("falcon_assets/features/sla/hooks.py")})
    assert Path("tests/test_three_ways.py") in reached
    assert READS_ALL in reached
    assert Path("tests/model/test_frequency.py") not in reached
