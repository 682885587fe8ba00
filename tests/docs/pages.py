"""The README and the pages of the site, cut into the blocks that people copy."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT
from textwrap import dedent

from tests.processes import CHECKOUT

README = CHECKOUT / "README.md"
PAGES = [README, *sorted((CHECKOUT / "docs").rglob("*.md"))]
_FENCED = re.compile(r"^( *)```(\w+)(?: title=\"(.+?)\")?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ANY_FENCE = re.compile(r"^ *```", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: Its file, relative to the checkout.
        heading: The heading above it.
        language: What follows the fence.
        title: The file that it is to be written to, or the kind of entity that it is a part of; empty: none.
        text: What is in it.
    """

    page: str
    heading: str
    language: str
    title: str
    text: str

    @property
    def file(self) -> str:
        """The file that it is to be written to; empty: none."""
        return self.title if "." in self.title else ""


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    found = list(_FENCED.finditer(text))
    assert len(_ANY_FENCE.findall(text)) == 2 * len(found), f"{page}: a block without a language, or badly fenced"
    hidden = _FENCED.sub(lambda match: re.sub(r"[^\n]", ".", match[0]), text)  # a comment in a block is no heading
    headings = [(match.start(), match[1]) for match in _HEADING.finditer(hidden)]
    for match in found:
        heading = next((name for at, name in reversed(headings) if at < match.start()), "")
        yield Block(str(page.relative_to(CHECKOUT)), heading, match[2], match[3] or "", dedent(match[4]))


EXECUTABLE = ("bash", "graphql", "python")
"""Languages of blocks that tests execute."""
BLOCKS = [block for page in PAGES for block in _blocks(page)]


def section(heading: str) -> list[Block]:
    """The blocks below a heading, which only one page has."""
    found = [block for block in BLOCKS if block.heading == heading]
    assert len({block.page for block in found}) == 1, heading
    return found


def page(name: str) -> list[Block]:
    """The blocks of a page, by its path in the checkout."""
    return [block for block in BLOCKS if block.page == name]


def text_below(page: str, heading: str) -> str:
    """All that a page says below a heading."""
    return (CHECKOUT / page).read_text().partition(f"# {heading}\n")[2].partition("\n#")[0]


def run_blocks(blocks: Sequence[Block], folder: Path, environ: Mapping[str, str]) -> str:
    """Writes the files that ``blocks`` name, runs their commands in order, in one shell; what these print.

    Blocks of ``text`` must be part of it.
    """
    for block in blocks:
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
    script = "".join(block.text for block in blocks if block.language == "bash")
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environ, stdout=PIPE, stderr=STDOUT, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]
    for block in blocks:
        if block.language == "text":
            assert block.text in done.stdout, block.text
    return done.stdout
