"""Entities of a tree by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from falcon_assets.base.texts import hidden
from falcon_assets.catalog.made_feeds import MadeDocument
from falcon_assets.catalog.stored_tree import Stored, key_of, masked, read_tree
from falcon_assets.catalog.yaml_files.definition_files import UnfitFileError, definition_files, file_content, shown_path
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.errors import FalconError, Position, Problem, UnknownEntityError, UsageError
from falcon_assets.features.entities.listing import any_named
from falcon_assets.features.entities.results import ANY_KIND, EntityChange, Request
from falcon_assets.model.base import LONGEST_NAME, is_entity_name
from falcon_assets.model.entity import Key
from falcon_assets.model.expression import nearest
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation


def keys_named(stored: Stored, name: str, kind: str | None) -> list[Key]:
    """Returns at most one key; UnknownEntityError where there are several, and ``kind`` is not given."""
    found = [key for key in stored.by_key if key[1] == name and kind in (None, key[0])]
    if len(found) > 1:
        raise UnknownEntityError(
            f"there is {' and '.join(f'a {one}' for one, _ in found)} {name!r}: say which one with --kind"
        )
    return found


def stored_keys(stored: Stored, names: Iterable[str], kind: str | None) -> list[Key]:
    keys = []
    for name in names:
        found = keys_named(stored, name, kind)
        if not found:
            raise UnknownEntityError(f"there is no {kind or 'entity'} {name!r}{_hint(stored, name)}")
        keys += found
    return keys


def _hint(stored: Stored, name: str) -> str:
    made = stored.made.get(("feed", name))
    if isinstance(made, MadeDocument):
        return f": feed {name!r} is made of flow {made.flow.data['name']!r}, which is to be changed instead"
    return nearest(name, [known for _, known in stored.by_key])


_TEXT = Path("definitions")
"""The file name that problems show for a definition given as text."""
_SHOWN = 200
_SUFFIXES = (".yaml", ".yml")


def read_given(stored: Stored, request: Request, *, names_first: bool = False) -> tuple[Stored, list[str]]:
    """Returns the definitions in the given files and folders, and the given names of entities.

    ``names_first``: an existing entity takes precedence over a file of the same name. UsageError where files are not
    read for this user, and a word is not a name.
    """
    files, names = Files(), []
    if request.definitions:
        read_file(_TEXT, request.definitions.encode(errors="surrogatepass"), files)
    for text in request.given:
        if not request.takes_files:
            if not is_entity_name(text):
                raise UsageError(
                    f"{text[:_SHOWN]!r} is not the name of an entity: files are not read here, "
                    "give what is in them as definitions"
                )
            names.append(text)
        elif _is_word(text) and (not _exists(Path(text)) or (names_first and keys_named(stored, text, request.kind))):
            names.append(text)
        else:
            _read(Path(text), files)
    return Stored(stored.root, files), names


def there_already(stored: Stored, names: Sequence[str], kind: str | None) -> list[EntityChange]:
    changes = []
    for name in names:
        found = keys_named(stored, name, kind)
        if not found:
            hint = _hint(stored, name)
            raise UnknownEntityError(f"there is no file and no {kind or 'entity'} {_shortened(name)!r}{hint}")
        changes += [EntityChange(*key, "unchanged", stored.by_key[key].file) for key in found]
    return changes


def asked_for(stored: Stored, request: Request) -> list[Key]:
    """Returns the keys of a refused request, as far as they can be read; raises nothing."""
    keys: list[Key] = []
    for text in request.given:
        with suppress(FalconError):
            given, names = read_given(stored, Request((text,), takes_files=request.takes_files), names_first=True)
            keys += _keys(stored, given, names, request.kind)
    with suppress(FalconError):
        keys += _keys(stored, read_given(stored, Request(definitions=request.definitions))[0], (), None)
    return keys


def _keys(stored: Stored, given: Stored, names: Sequence[str], kind: str | None) -> Iterator[Key]:
    for name in names:
        there = [key for key in stored.by_key if key[1] == name and kind in (None, key[0])]
        yield from there or [(kind or ANY_KIND, _shortened(name))]
    yield from (key for document in given.files.documents if (key := key_of(document)))


def _read(path: Path, files: Files) -> None:
    def report(at: Path, message: str) -> None:
        files.problems.append(Problem(Position(shown_path(at), 1), "", message))

    if _exists(path) and path.is_dir():
        found = list(definition_files(path, report))
        if not (found or files.problems):
            report(path, "there is no entity definition (*.yaml, *.yml) in the folder")
    else:
        try:
            found = [(path, file_content(path, path.parent))]
        except UnfitFileError as error:
            report(path, str(error))
            found = []
    for at, raw in found:
        if at not in files.contents:
            read_file(at, raw, files)


def _is_word(text: str) -> bool:
    return "/" not in text and not text.endswith(_SUFFIXES)


def _exists(path: Path) -> bool:
    """Returns False also for texts that cannot be a file name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _shortened(name: str) -> str:
    """Cuts off names that no entity can have: the text is shown and recorded."""
    return name if len(name) <= 2 * LONGEST_NAME else f"{name[: 2 * LONGEST_NAME]}..."


def stored_definition(installation: Installation, name: str, kind: str | None = None) -> str:
    """Returns the definition as text; values of storage options are stars. Raises as :func:`.show_entity`."""
    entities = installation.all_entities
    entity = any_named(entities, name, kind)
    require_readable(installation, "show", [entity])
    stored = read_tree(entities.root, entities.position(entity).file)
    document = stored.by_key.get((entity.kind, entity.name))
    if document is None:  # made of what other files say, too
        stored = read_tree(entities.root)
        document = stored.made[entity.kind, entity.name]
    return hidden(masked(stored.text(document).strip("\n") + "\n"))
