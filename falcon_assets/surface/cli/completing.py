"""Completion for shells: commands and names of entities without loading what takes seconds, all else by click."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from falcon_assets.errors import FalconError

_ANY = ("cluster", "datasource", "flow", "feed", "process")
_RUNS = ("process", "feed")
TAKES: Mapping[str, tuple[str, ...]] = {
    "explain": ("process",),
    "try": ("process",),
    **{f"entity {name}": _ANY for name in ("show", "status", "dependency", "history", "diff", "restore")},
    **{f"entity {name}": _ANY for name in ("delete", "touch")},
    **{f"entity {name}": _RUNS for name in ("schedule", "suspend", "resume")},
    **{f"flow {name}": ("flow",) for name in ("show", "explain", "run", "kill", "status", "delete")},
    **{f"instance {name}": _RUNS for name in ("list", "status", "running", "summary", "params", "dependency", "logs")},
    **{f"instance {name}": _RUNS for name in ("wait", "triage", "rerun", "kill", "suspend", "resume")},
    "instance replay": ("process",),
    "instance grid": _RUNS,
    **{f"instance {name}": ("feed",) for name in ("collect", "versions", "restore", "resend")},
    **{f"feed {name}": ("feed",) for name in ("report", "watermark")},
    **{f"quality {name}": ("feed",) for name in ("show", "check", "profile", "history", "accept")},
    **{f"lineage {name}": ("feed",) for name in ("show", "diff", "impact", "status")},
    "notification test": _RUNS,
    "datasource test": ("datasource",),
    "admin root adopt": ("cluster",),
}
"""Command -> the kinds of entities whose name is its first argument."""
MANY = frozenset({"entity delete", "flow delete", "entity touch", "entity schedule", "entity suspend", "entity resume"})
"""Those that take several."""
_OPTIONS: Mapping[str, tuple[str, ...]] = {"--cluster": ("cluster",), "--feed": ("feed",), "--process": ("process",)}


def kinds_asked(words: Sequence[str]) -> tuple[str, ...] | None:
    """The kinds of which a name comes next after these words, without the program; None: something else does."""
    command = next((found for end in (3, 2, 1) if (found := " ".join(words[:end])) in TAKES), None)
    if words and words[-1] in _OPTIONS:
        return _OPTIONS[words[-1]]
    if command is None or (words[-1].startswith("-") and "=" not in words[-1]):
        return None
    given = _arguments(words[len(command.split()) :])
    return TAKES[command] if not given or command in MANY else None


def _arguments(words: Sequence[str]) -> list[str]:
    """The words that are no options, and no values of options: what follows one is taken for its value."""
    found, is_value = [], False
    for word in words:
        if word.startswith("-"):
            is_value = "=" not in word
        elif is_value:
            is_value = False
        else:
            found.append(word)
    return found


def _names(kinds: tuple[str, ...], incomplete: str) -> list[CompletionItem]:
    from falcon_assets.catalog.declared import declared_names  # noqa: PLC0415 - every command loads this module
    from falcon_assets.settings import load_settings  # noqa: PLC0415

    try:
        root = load_settings().entity_defs
    except FalconError:
        return []
    found = {name: kind for kind, name in declared_names(root) if kind in kinds and name.startswith(incomplete)}
    return [CompletionItem(name, help=kind) for name, kind in sorted(found.items())]


class _Names(ShellComplete):
    """Knows the names of entities."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        kinds = None if incomplete.startswith("-") else kinds_asked(args)
        return super().get_completions(args, incomplete) if kinds is None else _names(kinds, incomplete)


class _Bash(_Names, BashComplete): ...


class _Zsh(_Names, ZshComplete): ...


class _Fish(_Names, FishComplete): ...


SHELLS = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
"""Shell -> what completes there."""
VARIABLE = "_FALCON_COMPLETE"
"""By which shells ask (source: click)."""


def register() -> None:
    """Has click complete so."""
    for shell, complete in SHELLS.items():
        add_completion_class(complete, shell)
