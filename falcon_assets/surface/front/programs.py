"""The programs that serve an installation: the front, Dagster's daemon, and a code server for each location."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from falcon_assets.base.new_files import write_file
from falcon_assets.errors import SettingsError
from falcon_assets.history.platform.socket_folder import socket_folder
from falcon_assets.settings import Settings
from falcon_assets.surface.front.supervisor import Program

_PRIVATE = 0o600
_BUSY = {
    "DAGSTER_CODE_SERVER_MAX_WORKERS": "32",
    "DAGSTER_GRPC_MAX_WORKERS": "32",
    "DAGSTER_GRPC_PROXY_HEARTBEAT_TTL_SECONDS": "300",
}
"""A code server ends when it gets no heartbeat, which it does not while all its threads work on ticks."""
RELOADS_ITSELF = {"FALCON_WEBSERVER_URL": ""}
"""No webserver has to be asked to reload the code servers that are served, unless one is declared."""
_OPTIONS = {"module_name": "-m", "relative_path": "-f", "attribute": "-a", "working_directory": "-d"}


@dataclass(frozen=True)
class Served:
    """What serves the code locations of a ``workspace.yaml``.

    Attributes:
        workspace: For the front and the daemon: with the sockets of our code servers.
        code: The code servers; there are none for locations that others serve.
        sockets: Theirs.
    """

    workspace: Path
    code: tuple[Program, ...]
    sockets: tuple[Path, ...]


def served(settings: Settings, workspace: Path) -> Served:
    """Reads a ``workspace.yaml``, and writes the other one to FALCON_HOME.

    Raises:
        SettingsError: it is missing, or is none, or FALCON_HOME has no place for sockets.
    """
    folder = settings.home / "serve"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sockets = socket_folder(folder, None, os.geteuid(), os.getegid())
    entries, programs, places = [], [], []
    for entry in _entries(workspace):
        kind, target = next(iter(entry.items()))
        given = {"relative_path": target} if isinstance(target, str) and kind == "python_file" else target
        given = {"module_name": target} if isinstance(target, str) and kind == "python_module" else given
        if kind not in ("python_module", "python_file") or given.keys() - {*_OPTIONS, "location_name"}:
            entries.append(entry)  # Dagster starts it, or others do
            continue
        name = given.get("location_name") or given.get("module_name") or Path(given["relative_path"]).name
        place = sockets / f"{hashlib.sha256(name.encode()).hexdigest()[:10]}.sock"
        places.append(place)
        entries.append({"grpc_server": {"socket": str(place), "location_name": name}})
        programs.append(Program("code", _command(given, name, place, workspace.parent), partial(_listens, place)))
    made = folder / "workspace.yaml"
    write_file(made, yaml.safe_dump({"load_from": entries}), _PRIVATE)
    return Served(made, tuple(programs), tuple(places))


def _entries(workspace: Path) -> Iterator[dict[str, Any]]:
    try:
        found = yaml.safe_load(workspace.read_text())
    except OSError as error:
        raise SettingsError(f"{workspace} cannot be read: {error.strerror}: it says what to serve") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{workspace} is not YAML: {error}") from error
    listed = found.get("load_from") if isinstance(found, Mapping) else None
    entries = [listed] if isinstance(listed, Mapping) else listed
    if not isinstance(entries, list) or not all(isinstance(one, Mapping) and len(one) == 1 for one in entries):
        raise SettingsError(f"{workspace}: load_from is a list of code locations, such as python_module")
    yield from map(dict, entries)


def _command(given: Mapping[str, str], name: str, place: Path, folder: Path) -> list[str]:
    command = [sys.executable, "-m", "dagster", "code-server", "start", "--socket", str(place)]
    command += ["--location-name", name]
    for key, option in _OPTIONS.items():
        if key in given:
            value = given[key]
            is_path = key in ("relative_path", "working_directory")
            command += [option, str(folder.absolute() / value) if is_path else value]
    return command


def _listens(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(place)) == 0


def daemon(workspace: Path) -> Program:
    return Program("daemon", [sys.executable, "-m", "falcon_assets.surface.front.daemon", str(workspace)])


def front(host: str, port: int, path_prefix: str, workspace: Path) -> Program:
    """In a process of its own, as ``--only front`` is."""
    where = ["--host", host, "--port", str(port), "--path-prefix", path_prefix, "--workspace", str(workspace)]
    program = "from falcon_assets.surface.cli.main import program; program()"
    return Program("front", [sys.executable, "-c", program, "serve", "--only", "front", *where])


def environ_of_programs(settings: Settings, folder: Path) -> dict[str, str]:
    """Raises SettingsError where Dagster has no ``dagster.yaml``: its daemon would have a history of its own."""
    environ = {**_BUSY, "PYTHONUNBUFFERED": "1", **RELOADS_ITSELF, **settings.environ}
    if not environ.get("DAGSTER_HOME"):
        if not (folder / "dagster.yaml").exists():
            raise SettingsError(
                f"there is no dagster.yaml in {folder}: start falcon serve where it is, or set DAGSTER_HOME"
            )
        environ["DAGSTER_HOME"] = str(folder.absolute())
    return environ
