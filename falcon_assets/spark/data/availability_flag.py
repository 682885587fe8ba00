"""Keeps availability flags out of the data."""

from __future__ import annotations

from fnmatch import fnmatchcase

from falcon_assets.errors import WorkflowError
from falcon_assets.model.feed import Feed
from falcon_assets.storage.instances.data_files import is_hidden

_GLOB_OPTION = "pathGlobFilter"


def flag_options(feed: Feed, *, of_feed: bool = True) -> dict[str, str]:
    """The reader options under which Spark does not take the feed's availability flag for data.

    Spark skips hidden files (``_SUCCESS``) by itself. Any other flag (``DONE``) is left out by a glob, because that
    costs no listing and also works where this machine cannot read the files.

    Args:
        feed: The feed.
        of_feed: Whether the feed's own options are used as well.

    Raises:
        WorkflowError: the feed has a ``pathGlobFilter`` of its own that lets the flag through.
    """
    flag = feed.availability_flag
    if flag is None or is_hidden(flag):
        return {}
    own = next((value for key, value in feed.options.items() if key.lower() == _GLOB_OPTION.lower()), None)
    if own is None or not of_feed:
        return {_GLOB_OPTION: everything_but(flag)}
    if fnmatchcase(flag, own):
        raise WorkflowError(
            f"feed {feed.name!r}: the option {_GLOB_OPTION} {own!r} also matches the availability flag {flag!r}, "
            "which is not data: narrow it"
        )
    return {}


def everything_but(name: str) -> str:
    """A Hadoop glob for every file name except ``name``.

    Hadoop's globs have no negation of words, so it lists the ways to differ: at the first character, at the
    second ..., by ending early, or by going on.
    """
    ways = [f"{name}?*"]
    for index, character in enumerate(name):
        start = name[:index]
        ways.append(f"{_literal(start)}[^{_literal(character)}]*")
        if start:
            ways.append(_literal(start))
    ways[0] = f"{_literal(name)}?*"
    return "{" + ",".join(ways) + "}"


def _literal(text: str) -> str:
    return "".join(character if character.isalnum() or character == "_" else f"\\{character}" for character in text)
