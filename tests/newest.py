"""``make newest``: the tests with the newest releases of everything that pyproject.toml allows, and which those are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click

CHECKOUT = Path(__file__).parents[1]
ENVIRONMENT = CHECKOUT / ".venv-newest"
PYTHON = ENVIRONMENT / "bin" / "python"


def main(tests: list[str]) -> int:
    """Installs them beside the tested ones, and runs these tests with them; the exit code."""
    _run("uv", "venv", "--quiet", "--clear", "--seed", "--python", sys.executable, str(ENVIRONMENT))
    _run("uv", "pip", "install", "--quiet", "--upgrade", "--python", str(PYTHON), "--editable", f"{CHECKOUT}[demo,dev]")
    changes = changed(_installed(Path(sys.executable)), _installed(PYTHON))
    if not changes:
        click.echo("What is installed is the newest of all; nothing to test")
        return 0
    click.echo("\n".join(["Other than what is installed:", *(f"  {one}" for one in changes)]))
    # What cannot be imported any more must not keep the others from saying what they miss.
    options = ("-m", "not soak", "--continue-on-collection-errors", "-p", "no:cacheprovider")
    ended = subprocess.run([str(PYTHON), "-m", "pytest", *options, *tests], cwd=CHECKOUT, check=False).returncode
    if ended:
        click.echo("Error: one of these releases breaks what is said above; fix it before `make constraints`")
    else:
        click.echo("The tests pass with them: `make constraints` takes them")
    return ended


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What is another version, came or went, as ``name old -> new``."""
    names = sorted(before.keys() | after.keys())
    versions = [(name, before.get(name, "none"), after.get(name, "none")) for name in names]
    return [f"{name} {old} -> {new}" for name, old, new in versions if old != new]


def _installed(python: Path) -> dict[str, str]:
    listed = json.loads(_run("uv", "pip", "list", "--format", "json", "--python", str(python)))
    return {one["name"]: one["version"] for one in listed if one["name"] not in {"pip", "setuptools", "wheel"}}


def _run(program: str, *arguments: str) -> str:
    command = [str(Path(sys.executable).parent / program), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("Error: the newest releases could not be found out or installed; what was said is above")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
