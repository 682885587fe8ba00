"""``make dagster-newest``: these tests with the newest Dagster within the range of pyproject.toml, as pip finds it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import requires, version
from pathlib import Path

import click

LAYER = Path(sys.prefix, "dagster-newest")
TESTS = str(Path(__file__).parent)


def main() -> int:
    """Installs it beside what is installed, unless that is the newest; the exit code."""
    ours = [one for one in requires("falcon-assets") or () if one.startswith("dagster")]
    newer = _resolved("--upgrade", *ours)
    if not newer:
        # From the index alone: to pip, what is installed would do where it cannot ask.
        newest = _resolved(
            "--ignore-installed", "--no-deps", *(one for one in ours if re.match(r"dagster\b(?!-)", one))
        )
        alone = "" if version("dagster") in newest[0] else f"; {newest[0]} does not go with the others yet"
        click.echo(f"Dagster {version('dagster')} is the newest of {', '.join(sorted(ours))}{alone}")
        return 0
    click.echo(f"Newer than what is installed: {' '.join(newer)}")
    python = layer(LAYER)
    _pip("--python", str(python), "install", "--no-deps", *newer)
    # What cannot be imported any more must not keep the others from saying what they miss.
    options = ("-n", "0", "--continue-on-collection-errors", "-p", "no:cacheprovider", "--tb", "short")
    ended = subprocess.run([str(python), "-m", "pytest", *options, TESTS], check=False).returncode
    if ended:
        click.echo(
            "Error: a newer Dagster breaks what is said above; mend falcon_assets/orchestration/dagster_internals"
        )
    return ended


def _resolved(*arguments: str) -> list[str]:
    """What pip would install, as ``name==version``."""
    report = json.loads(_pip("install", "--dry-run", "--report", "-", *arguments))
    return sorted(f"{one['metadata']['name']}=={one['metadata']['version']}" for one in report["install"])


def layer(folder: Path) -> Path:
    """A new environment that has all of this one's packages, but where it has its own; its interpreter."""
    venv.create(folder, clear=True, symlinks=True, with_pip=False)
    here = sysconfig.get_path("purelib")
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (own / "below.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    return folder / "bin" / "python"


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("Error: pip could not find out or install the newest Dagster; what it said is above")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
