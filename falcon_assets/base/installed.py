"""Whether what an extra of a package needs is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement


def is_installed(package: str) -> bool:
    """Whether all is there that a package needs, with the extra in its name (``falcon-assets[sftp]``); "": nothing."""
    if not package:
        return True
    wanted = Requirement(package)
    try:
        lines = [Requirement(one) for one in requires(wanted.name) or ()]
        for one in lines:
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in wanted.extras):
                version(one.name)
    except PackageNotFoundError:
        return False
    return True
