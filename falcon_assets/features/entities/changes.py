"""Plans of commands on a tree of definitions: the entities and files that would change."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any, TypeAlias

from falcon_assets.base.texts import hidden
from falcon_assets.catalog.additions import free_path, problems_of
from falcon_assets.catalog.declared import parse_documents
from falcon_assets.catalog.made_feeds import MadeDocument
from falcon_assets.catalog.stored_tree import Stored, as_json, key_of, masked
from falcon_assets.catalog.yaml_files.definition_files import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES, shown_path, text_of
from falcon_assets.catalog.yaml_files.documents import Document, Files
from falcon_assets.catalog.yaml_files.file_changes import AnyChange, FileChange, WorkflowChange
from falcon_assets.catalog.yaml_files.file_text import UnwritableError, normalised, rewritten
from falcon_assets.catalog.yaml_files.merging import canonical, has_comments, merged, said
from falcon_assets.catalog.yaml_files.secrets import secret_properties, secret_values
from falcon_assets.errors import (
    DefinitionStoreError,
    EntityInUseError,
    InvalidDefinitionsError,
    Problem,
    UnknownEntityError,
    sorted_problems,
)
from falcon_assets.features.entities.dependencies import needs_of
from falcon_assets.features.entities.results import ANY_KIND, EntityChange, Touched
from falcon_assets.model.entity import KINDS, Key
from falcon_assets.model.expression import nearest
from falcon_assets.planning.workloads import replication_name

Update: TypeAlias = tuple[Document, Document]


@dataclass(frozen=True)
class Plan:
    """The changes of a command; ``warnings`` are of new definitions that are valid, but surprising.

    ``written`` are the new definitions, of entities that exist or not.
    """

    entities: tuple[EntityChange, ...]
    files: tuple[AnyChange, ...] = ()
    warnings: tuple[Problem, ...] = ()
    updates: tuple[Update, ...] = ()
    written: tuple[Document, ...] = ()

    def diff(self) -> str:
        return "".join(_diff(change) for change in self.files)


def _diff(change: AnyChange) -> str:
    if isinstance(change, WorkflowChange):
        return change.diff(shown_path(change.path))
    before, after = (
        hidden(masked(text_of(content))) if content is not None else "" for content in (change.before, change.after)
    )
    name = shown_path(change.path)
    sides = ("/dev/null" if change.before is None else name, "/dev/null" if change.after is None else name)
    lines = list(unified_diff(_lines(before), _lines(after), *sides, lineterm=""))
    if not lines:
        return f"--- {name}\n+++ {name}\n(hidden values change)\n"
    return "".join(f"{line}\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Splits lines as editors and diff do; YAML knows other line breaks, too."""
    return text.removesuffix("\n").split("\n") if text else []


_STARS = re.compile(r"\*+")


def plan_submit(
    stored: Stored, given: Stored, workflows: Collection[str] = (), *, otherwise: str = "falcon entity update"
) -> Plan:
    """Adds entities; those with the same definition stay.

    Raises:
        DefinitionStoreError: one exists with another definition; the text says to use what is ``otherwise``.
    """
    wanted, unchanged = _wanted(stored, given)
    others = [stored.by_key[key] for key in wanted if key in stored.by_key]
    if others:
        found = "; ".join(f"{_named(one)} is submitted already, with another definition" for one in others)
        raise DefinitionStoreError(f"{found}: use {otherwise}")
    warnings = _checked(stored, wanted, workflows)
    changes, files = _added(stored, given, wanted)
    return replace(_plan(stored, [*changes, *unchanged], files, warnings), written=(*wanted.values(),))


def plan_update(stored: Stored, given: Stored, workflows: Collection[str] = ()) -> Plan:
    """Replaces definitions; one without comments keeps comments, order of keys and layout of the old text."""
    wanted, unchanged = _wanted(stored, given, texts=True)
    missing = [key for key in wanted if key not in stored.by_key]
    if missing:
        found = "; ".join(f"there is no {kind} {name!r}{_nearest(stored, name)}" for kind, name in missing)
        raise UnknownEntityError(f"{found}: use falcon entity submit")
    warnings = _checked(stored, wanted, workflows)
    changes, files, updates = _replaced(stored, given, wanted)
    planned = _plan(stored, [*changes, *unchanged], files, warnings, updates)
    return replace(planned, written=(*wanted.values(),))


def plan_put(stored: Stored, given: Stored, *, texts: bool = False) -> Plan:
    """Adds the entities that do not exist, and replaces the others; ``texts`` also where only comments differ."""
    wanted, unchanged = _wanted(stored, given, texts=texts)
    warnings = _checked(stored, wanted, ())
    added, new = _added(stored, given, {key: one for key, one in wanted.items() if key not in stored.by_key})
    there = {key: one for key, one in wanted.items() if key in stored.by_key}
    changes, files, updates = _replaced(stored, given, there)
    planned = _plan(stored, [*added, *changes, *unchanged], [*new, *files], warnings, updates)
    return replace(planned, written=(*wanted.values(),))


def made_updates(stored: Stored, plan: Plan) -> Iterator[Update]:
    """Yields feeds that flows are made of, before and after a plan, where they change."""
    if not (stored.made or any(one.data["kind"] == "flow" for one in plan.written)):
        return
    changed = {(one.kind, one.name) for one in plan.entities if one.action != "unchanged"}
    rest = [one for one in stored.files.documents if key_of(one) not in changed]
    after = Stored(stored.root, Files([*rest, *plan.written])).made
    for key, before in stored.made.items():
        if key in after and canonical(before.data) != canonical(after[key].data):
            yield before, after[key]


def _added(
    stored: Stored, given: Stored, wanted: Mapping[Key, Document]
) -> tuple[list[EntityChange], list[FileChange]]:
    taken, files, changes = set(stored.files.contents), [], []
    for (kind, name), document in wanted.items():
        path = free_path(stored.root, kind, name, taken)
        taken.add(path)
        text = _own_text(given, document)
        changes.append(EntityChange(kind, name, "submitted", shown_path(path)))
        files.append(FileChange(path, None, _encoded(text, path)))
    return changes, files


def _replaced(
    stored: Stored, given: Stored, wanted: Mapping[Key, Document]
) -> tuple[list[EntityChange], list[FileChange], tuple[Update, ...]]:
    texts: dict[Path, dict[int, str | None]] = {}
    changes = []
    for key, document in wanted.items():
        before = stored.by_key[key]
        new, old = _own_text(given, document), stored.text(before).replace("\r\n", "\n")
        if not has_comments(new):
            new = merged(old.strip("\n"), new)
        texts.setdefault(before.path, {})[stored.number(before)] = new
        changes.append(EntityChange(*key, "updated", before.file))
    updates = tuple((stored.by_key[key], document) for key, document in wanted.items())
    return changes, list(_rewritten(stored, texts)), updates


def plan_delete(stored: Stored, keys: Sequence[Key]) -> Plan:
    """Removes entities; missing ones are unchanged. Raises EntityInUseError where others need them."""
    wanted = {key: stored.by_key[key] for key in keys if key in stored.by_key}
    rest = [one for one in stored.files.documents if key_of(one) not in wanted]
    _require_unused(stored, wanted, rest)
    if wanted and rest:
        _check(stored, rest, [])
    texts: dict[Path, dict[int, str | None]] = {}
    for document in stored.files.documents:
        if key_of(document) in wanted:
            texts.setdefault(document.path, {})[stored.number(document)] = None
    changes = [
        EntityChange(*key, "deleted", wanted[key].file) if key in wanted else EntityChange(*key, "unchanged", "")
        for key in dict.fromkeys(keys)
    ]
    return _plan(stored, changes, list(_rewritten(stored, texts)), ())


def require_definitions(given: Stored) -> None:
    """Raises InvalidDefinitionsError with all problems of the given definitions, also for values that are stars."""
    problems = parse_documents(given.root, given.files)[1]
    for document in given.files.documents:
        problems += [
            document.problem_at(node, "the value is hidden: write it, or {env: NAME}")
            for node in (*secret_values(document.root), *secret_properties(document.root))
            if _STARS.fullmatch(node.value)
        ]
    if problems:
        raise InvalidDefinitionsError(problems)
    if not given.files.documents:
        raise DefinitionStoreError(f"there is no entity definition in {', '.join(_shown(given)) or 'what was given'}")


def _wanted(stored: Stored, given: Stored, *, texts: bool = False) -> tuple[dict[Key, Document], list[EntityChange]]:
    """Returns definitions to write and unchanged entities; with ``texts``, other comments make another definition."""
    require_definitions(given)
    wanted: dict[Key, Document] = {}
    unchanged: list[EntityChange] = []
    for document in sorted(given.files.documents, key=lambda one: list(KINDS).index(one.data["kind"])):
        key = (document.data["kind"], document.data["name"])
        before = stored.by_key.get(key)
        if key in wanted:
            message = f"{key[0]} {key[1]!r} is already defined at {wanted[key].position(('name',))}"
            raise InvalidDefinitionsError([document.problem(("name",), message)])
        if before is not None and _is_same(stored, before, given, document, texts):
            unchanged.append(EntityChange(*key, "unchanged", before.file))
        else:
            wanted[key] = document
    return wanted, unchanged


def _is_same(stored: Stored, before: Document, given: Stored, document: Document, texts: bool) -> bool:
    if canonical(before.data) != canonical(document.data):
        return False
    if not texts:
        return True
    new = _own_text(given, document)
    return not has_comments(new) or new == _own_text(stored, before)


def _checked(stored: Stored, wanted: Mapping[Key, Document], workflows: Collection[str]) -> tuple[Problem, ...]:
    if not wanted:
        return ()
    rest = [one for one in stored.files.documents if key_of(one) not in wanted]
    found = _check(stored, rest, list(wanted.values()), workflows)
    files = {document.file for document in wanted.values()}
    return sorted_problems(one for one in found if one.position.file in files)


def _check(stored: Stored, rest: list[Document], new: list[Document], workflows: Collection[str] = ()) -> list[Problem]:
    files = Files([*rest, *new], list(stored.files.problems), set(stored.files.unread_names))
    problems = problems_of(stored.root, files, workflows)
    if not all(problem.is_warning for problem in problems):
        raise InvalidDefinitionsError(problems)
    return problems


def _require_unused(stored: Stored, going: Mapping[Key, Document], rest: list[Document]) -> None:
    definitions = parse_documents(stored.root, Files(rest))[0]
    users: dict[Key, list[str]] = {}
    for one in definitions.all():
        if isinstance(one.document, MadeDocument):
            continue  # its flow needs the same
        for need in dict.fromkeys((need.kind, need.name) for need in needs_of(one.entity)):
            if need in going:
                users.setdefault(need, []).append(_named(one.document))
    if users:
        found = (f"{kind} {name!r} is needed by {', '.join(those)}" for (kind, name), those in users.items())
        raise EntityInUseError(f"{'; '.join(found)}: delete those first, or together with it")


def _rewritten(stored: Stored, texts: Mapping[Path, Mapping[int, str | None]]) -> Iterator[FileChange]:
    for path, changes in texts.items():
        before = stored.files.contents[path]
        text = text_of(before)
        try:
            after = rewritten(text.replace("\r\n", "\n"), changes)
        except UnwritableError:
            raise DefinitionStoreError(
                f"{shown_path(path)} cannot be rewritten by a command: change it with an editor"
            ) from None
        encoded = _encoded(after.replace("\n", "\r\n") if "\r\n" in text else after, path) if after else None
        if encoded != before:
            yield FileChange(path, before, encoded)


def _own_text(tree: Stored, document: Document) -> str:
    """Returns the stored text of a document, or JSON (which is YAML too) where its layout cannot be rewritten."""
    try:
        text = normalised(tree.text(document))
        if said(text) == [canonical(document.data)]:
            return text
    except UnwritableError:
        pass
    return as_json(document)


def _plan(
    stored: Stored,
    changes: Sequence[EntityChange],
    files: Sequence[FileChange],
    warnings: tuple[Problem, ...],
    updates: tuple[Update, ...] = (),
) -> Plan:
    contents = {**stored.files.contents, **{change.path: change.after for change in files}}
    left = [content for content in contents.values() if content is not None]
    if len(left) > MAX_FILES or sum(map(len, left)) > MAX_BYTES:
        raise DefinitionStoreError(
            f"the tree would have more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes, which is not read any more"
        )
    ordered = sorted(changes, key=lambda change: [*KINDS, ANY_KIND].index(change.kind))
    return Plan(tuple(ordered), tuple(files), warnings, updates)


def _encoded(text: str, path: Path) -> bytes:
    content = text.encode()
    if len(content) > MAX_FILE_BYTES:
        raise DefinitionStoreError(f"{shown_path(path)} would have more than {MAX_FILE_BYTES:,} bytes")
    return content


def _named(document: Document) -> str:
    return f"{document.data['kind']} {document.data['name']!r} ({document.position()})"


def _nearest(stored: Stored, name: str) -> str:
    return nearest(name, [known for _, known in stored.by_key])


def _shown(given: Stored) -> list[str]:
    return [shown_path(path) for path in given.files.contents]


def touched_by(stored: Stored, updates: Sequence[Update]) -> tuple[Touched, ...]:
    """Returns the workloads that updates of feeds touch; updates of other kinds touch only themselves."""
    feeds = [(before.data, after.data) for before, after in updates if after.data["kind"] == "feed"]
    names = {after["name"] for _, after in feeds}
    found = {one for sides in feeds for feed in sides for one in _of_feed(feed)}
    for document in stored.files.documents if names else ():
        data = document.data if isinstance(document.data, dict) else {}
        if data.get("kind") == "process":
            used = {one["feed"] for key in ("inputs", "outputs") for one in data.get(key, ())}
            if used & names:
                found.add(Touched("process", data["name"], tuple(one["name"] for one in data["clusters"])))
    return tuple(sorted(found))


def _of_feed(feed: Mapping[str, Any]) -> Iterator[Touched]:
    by_type: dict[str, list[str]] = {"source": [], "target": []}
    for one in feed["clusters"]:
        by_type.get(one.get("type"), []).append(one["name"])
    for source in by_type["source"] if by_type["target"] else ():
        yield Touched("replication", replication_name(feed["name"], source), tuple(by_type["target"]))
    if kept := tuple(one["name"] for one in feed["clusters"] if "retention" in one):
        yield Touched("retention", feed["name"], kept)
