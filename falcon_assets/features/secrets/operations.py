"""Operations on secrets in definitions: a master key, encrypted values, rotation, and whether all can be decrypted."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from falcon_assets.catalog.additions import require_changeable
from falcon_assets.catalog.encryption import CustomerKeys, MasterKey, Sealed, master_keys, new_master_key
from falcon_assets.catalog.stored_entity import StoredEntity
from falcon_assets.catalog.stored_secrets import StoredSecret, encrypted_values
from falcon_assets.catalog.stored_tree import key_of
from falcon_assets.catalog.validation import legal_keys, unknown_word
from falcon_assets.catalog.yaml_files.definition_files import shown_path, text_of
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.catalog.yaml_files.file_changes import FileChange
from falcon_assets.catalog.yaml_files.journal import apply_changes, locked_tree
from falcon_assets.catalog.yaml_files.secrets import spans_of
from falcon_assets.errors import DefinitionStoreError, Position, SecretError, SettingsError, UsageError
from falcon_assets.model.access import Role, may_read
from falcon_assets.model.base import is_entity_name
from falcon_assets.model.entity import KINDS
from falcon_assets.model.reference import ENCRYPTED, encrypted_in
from falcon_assets.operations.acting import acting, require_change
from falcon_assets.operations.audit import audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Operation, Result
from falcon_assets.operations.reload import reload_code_locations
from falcon_assets.settings import Settings

_BOM = b"\xef\xbb\xbf"
_INSTEAD = "encrypt where the definitions are written, and deploy them"


@dataclass(frozen=True)
class NewKey(Result):
    """A new master key; ``id`` tells it from others and is no secret."""

    file: Path
    id: str

    def as_data(self) -> dict[str, Any]:
        return {"file": str(self.file), "id": self.id}


class MakeKey(Operation):
    """Make a master key, and write it to FILE, which only you can read.

    An existing file is not replaced. Keep a copy in a safe place: nobody can decrypt your secrets without the key.
    """

    command = "secrets keygen"
    remote = False
    file: Annotated[Path, Given("FILE")]

    def run(self, installation: Installation) -> NewKey:
        """Raises SettingsError where the file exists, cannot be written, or would lie with the definitions."""
        file, text = self.file.expanduser().absolute(), new_master_key()
        if file.resolve().is_relative_to(installation.settings.entity_defs.resolve()):
            raise SettingsError(f"{file} is among the definitions, which others read: choose another place")
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w") as opened:
                opened.write(f"{text}\n")
                opened.flush()
                os.fsync(descriptor)
        except FileExistsError:
            raise SettingsError(f"{file} exists, and a key that is replaced is lost: choose another name") from None
        except OSError as error:
            raise SettingsError(f"{file} cannot be written: {error.strerror}") from error
        return NewKey(file, MasterKey.parse(text, str(file)).id)


@dataclass(frozen=True)
class EncryptedText(Result):
    """``made``: the file of the customer keys, where this value was the first one; else empty."""

    place: str
    encrypted: str
    made: str = ""


class EncryptValue(Operation):
    """Encrypt a value for KEY of the entity NAME, and print the YAML to paste there.

    KEY is the path of the key in the definition: storage_options.secret. Items of lists are given by their names, else
    by their positions from 0: clusters.lake.locations.storage_options.secret. The value is read from standard input,
    or you are asked for it. It can be decrypted at this place only: encrypt it again after the entity was renamed.
    """

    command = "secrets encrypt"
    remote = False
    kind: Annotated[str, Given("KIND", values=tuple(KINDS))]
    name: Annotated[str, Given("NAME")]
    key: Annotated[str, Given("KEY")]
    value: Annotated[str, Given(programs_only=True)] = Field("", repr=False)

    def run(self, installation: Installation) -> EncryptedText:
        """Raises SecretError without a master key that opens the customer key; UsageError for no place or value."""
        settings = installation.settings
        place, masters = self._place(), master_keys(settings.master_keys)
        if not self.value:
            raise UsageError("the value is empty")
        keys, made = CustomerKeys.read(settings.entity_defs), ""
        if not keys.wrapped:
            require_changeable(settings, _INSTEAD)
            with locked_tree(settings.entity_defs):
                keys = CustomerKeys.read(settings.entity_defs)
                if not keys.wrapped:
                    keys = keys.with_new(masters)
                    note = {"operation": self.command, "actor": settings.user, "at": settings.now().isoformat()}
                    apply_changes(settings.entity_defs, [FileChange(keys.path, None, keys.content())], note)
                    made = shown_path(keys.path)
        return EncryptedText(place, keys.encrypt(self.value, place, masters), made)

    def _place(self) -> str:
        if not is_entity_name(self.name):
            raise UsageError(f"{self.name!r} is not the name of an entity")
        first, legal = self.key.partition(".")[0], legal_keys(KINDS[self.kind], ())
        if first not in legal:
            raise UsageError(unknown_word("key", first, legal))
        return f"{self.kind} {self.name} {self.key}"


@dataclass(frozen=True)
class Rotation(Result):
    """The result of a rotation.

    Attributes:
        master: The id of the master key that wraps the customer keys from now on.
        kept: Customer keys, of which the last encrypts.
        removed: Customer keys that no value was encrypted with any more.
        values: How many values were encrypted anew, in ``files``.
        reload: Whether Dagster has loaded the change, in words.
    """

    master: str
    kept: Sequence[str]
    removed: Sequence[str]
    values: int
    files: Sequence[str]
    dry_run: bool
    reload: str = ""


class RotateKeys(Change):
    """Encrypt the customer keys with the first of the given master keys, in place of an older one.

    Give both master keys, the new one first, everywhere: FALCON_MASTER_KEY_FILE=new.key,old.key. Then rotate, deploy
    the definitions, and remove the old key. Values stay the same, and can be decrypted at any time.

    With --values, all values are encrypted again with a new customer key. The former one stays until the next rotation,
    for processes that have read the values before. A customer key that no value needs is removed.
    """

    command = "secrets rotate"
    role = Role.ADMIN
    of_owners = False
    values: bool = Field(False, description="Also encrypt all values again, with a new customer key.")

    def run(self, installation: Installation) -> Rotation:
        """Raises SecretError where a value or key cannot be decrypted, and changes nothing then."""
        settings = installation.settings
        root, masters = settings.entity_defs, master_keys(settings.master_keys)
        with audited(installation, self.command, self) as audit:
            require_changeable(settings, _INSTEAD)
            with nullcontext() if self.dry_run else locked_tree(root):
                found = list(encrypted_values(root))
                documents = {key: one.document for one in found if (key := key_of(one.document))}
                audit.about(documents)
                require_change(audit.principal, "rotate the keys of", map(StoredEntity, documents.values()))
                before = CustomerKeys.read(root)
                if not before.wrapped:
                    raise SecretError("nothing is encrypted here: falcon secrets encrypt makes the first customer key")
                used = {sealed.key for one in found if (sealed := Sealed.parse(one.text))}
                after = before.wrapped_anew(masters, {*used, before.current})
                changes = list[FileChange]()
                if self.values:
                    after = after.with_new(masters)
                    changes = _encrypted_anew(found, after, masters)
                changed = [FileChange(before.path, before.path.read_bytes(), after.content()), *changes]
                if not self.dry_run:
                    note = {"operation": self.command, "actor": audit.principal.name, "reason": self.reason}
                    apply_changes(root, changed, {**note, "at": settings.now().isoformat()})
            audit.result(changed=True)
        reload = reload_code_locations(settings.webserver) if changes and not self.dry_run else ""
        removed = [key for key in before.wrapped if key not in after.wrapped]
        files = [shown_path(one.path) for one in changes]
        number = len(found) if self.values else 0
        return Rotation(masters[0].id, [*after.wrapped], removed, number, files, self.dry_run, reload)


def _encrypted_anew(
    found: Iterable[StoredSecret], keys: CustomerKeys, masters: Sequence[MasterKey]
) -> list[FileChange]:
    by_file: dict[Path, list[StoredSecret]] = defaultdict(list)
    for one in found:
        by_file[one.document.path].append(one)
    return [_rewritten(path, those, keys, masters) for path, those in by_file.items()]


def _rewritten(
    path: Path, found: Sequence[StoredSecret], keys: CustomerKeys, masters: Sequence[MasterKey]
) -> FileChange:
    before = path.read_bytes()
    text, wanted, edits = text_of(before), dict[str, list[str]](), []
    for one in found:
        try:
            value = keys.decrypt(one.text, one.place, masters)
        except SecretError as error:
            raise SecretError(f"{one.document.position(one.path)}: {one.key}: {error}") from None
        new, node = keys.encrypt(value, one.place, masters), one.document.node((*one.path, ENCRYPTED))
        wanted.setdefault(one.place, []).append(new)
        edits += [(span, new) for span in spans_of(text, [node])] if node is not None else []  # type: ignore[list-item]
    for (start, end), new in sorted(edits, reverse=True):
        text = f"{text[:start]}{json.dumps(new)}{text[end:]}"
    after = (_BOM if before.startswith(_BOM) else b"") + text.encode()
    if _by_place(path, after) != wanted:
        raise DefinitionStoreError(f"{shown_path(path)} cannot be rewritten by a command: write each value out there")
    return FileChange(path, before, after)


def _by_place(path: Path, raw: bytes) -> Mapping[str, list[str]]:
    files, found = Files(), dict[str, list[str]]()
    read_file(path, raw, files)
    for document in files.documents:
        for _, place, text in encrypted_in(document.data):
            found.setdefault(place, []).append(text)
    return found


@dataclass(frozen=True)
class CheckedSecret(Result):
    """An encrypted value; ``problem`` is empty where it can be decrypted."""

    position: Position
    place: str
    customer_key: str
    problem: str
    keys = ("file", "line", "place", "customer_key", "problem")

    @property
    def file(self) -> str:
        return self.position.file

    @property
    def line(self) -> int:
        return self.position.line


@dataclass(frozen=True)
class CheckedSecrets(Result):
    """All encrypted values of definitions that the user may read."""

    secrets: Sequence[CheckedSecret]

    @property
    def failed(self) -> bool:
        return any(one.problem for one in self.secrets)


class CheckSecrets(Operation):
    """List the encrypted values in the definitions, and check that each can be decrypted; values are not shown.

    The exit code is 1 if one cannot.
    """

    command = "secrets check"
    remote = False

    def run(self, installation: Installation) -> CheckedSecrets:
        settings = installation.settings
        who = acting(settings)
        found = [one for one in encrypted_values(settings.entity_defs) if key_of(one.document)]
        return CheckedSecrets(
            [_checked(one, settings) for one in found if may_read(StoredEntity(one.document).acl, who)]
        )


def _checked(one: StoredSecret, settings: Settings) -> CheckedSecret:
    sealed, problem = Sealed.parse(one.text), ""
    try:
        CustomerKeys.read(settings.entity_defs).decrypt(one.text, one.place, master_keys(settings.master_keys))
    except SecretError as error:
        problem = str(error)
    return CheckedSecret(one.document.position(one.path), one.place, sealed.key if sealed else "", problem)
