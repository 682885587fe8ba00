"""The site: it builds without a warning, and a browser that shows it asks nobody else for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from falcon_assets.model.feed import Feed
from falcon_assets.surface.cli.main import COMMANDS
from tests.processes import CHECKOUT
from tests.test_layers import LAYERS

_LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"' >]+)|<link\b[^>]*\bhref=[\"']?([^\"' >]+)"
)
_IN_STYLES = re.compile(r"(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return folder


def test_nothing_is_loaded_from_the_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        loaded = [src or href for src, href in _LOADED.findall(text)]
        assert loaded
        assert [link for link in loaded if re.match(r"(https?:)?//", link)] == [], page
        assert 'class="mermaid"' not in text, "its library would come from the network"
    for style in site.rglob("*.css"):
        assert _IN_STYLES.findall(style.read_text()) == [], style


def test_what_is_generated_is_there(site: Path) -> None:
    entities = (site / "reference" / "entities.html").read_text()
    for key in [field.alias or name for name, field in Feed.model_fields.items()]:
        assert f"<td><code>{key}</code></td>" in entities
    for part in ("clusters[].retention.keep_last", "interfaces.write.endpoint", "late_process.inputs[].workflow"):
        assert f"<td><code>{part}</code></td>" in entities
    commands = (site / "reference" / "cli.html").read_text()
    assert [name for name in COMMANDS if f'<h3 id="falcon-{name}">' not in commands] == []
    drawing = (site / "architecture.html").read_text()
    assert [layer for layer in LAYERS if f'class="name">{layer}</text>' not in drawing] == []
