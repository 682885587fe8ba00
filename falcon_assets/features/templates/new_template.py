"""Templates that are added to packs, or replaced there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from falcon_assets.base.new_files import write_file
from falcon_assets.catalog.additions import require_changeable
from falcon_assets.catalog.stored_tree import read_tree
from falcon_assets.catalog.yaml_files.definition_files import UnfitFileError, plain_content, shown_path, text_of
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.errors import DefinitionStoreError, InvalidDefinitionsError, Position, Problem, UsageError
from falcon_assets.features.templates.definitions import Template
from falcon_assets.features.templates.packs import PACK_FILE, Packs, parsed_template, read_packs
from falcon_assets.features.templates.uses import MadeEntity, made_entities
from falcon_assets.model.base import is_entity_name
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.audit import audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Result

_INSTEAD = "change the pack where it is maintained, and deploy it"

_STARTER = """\
kind: template
name: {name}
version: 1
description: A sentence on what it makes
parameters:
  name: {{type: name, description: The name of the feed}}
  cluster: {{type: name}}
  limit: {{type: duration, default: days(30), description: How long instances are kept}}
  start: {{type: instant}}
entities:
  - kind: feed
    name: "{{{{ name }}}}"
    frequency: days(1)
    locations: {{data: "/{{{{ name }}}}/${{YEAR}}-${{MONTH}}-${{DAY}}"}}
    clusters:
      - name: "{{{{ cluster }}}}"
        validity: {{start: "{{{{ start }}}}", end: 9999-12-31T23:59Z}}
        retention: {{limit: "{{{{ limit }}}}"}}
"""


@dataclass(frozen=True)
class NewTemplateResult(Result):
    """``outdated``: entities that were made from an earlier version, which ``falcon template update`` would change."""

    name: str
    file: str
    changed: bool
    dry_run: bool
    outdated: Sequence[MadeEntity] = ()


class NewTemplate(Change):
    """Add the template PACK/NAME to the folder of packs: from FILE, or a starter template.

    A pack that does not exist is made, and belongs to you. With --replace, a template that exists is replaced by FILE,
    whose version must be higher; the entities that were made from it are listed, and stay unchanged until
    `falcon template update`.
    """

    command = "template new"
    remote = False
    template: Annotated[str, Given("PACK/NAME")] = Field(description="Pack and name of the template.")
    file: Annotated[Path | None, Given("[FILE]")] = Field(None, description="A YAML file with the template.")
    replace: bool = Field(False, description="Replace the template if it exists.")

    def run(self, installation: Installation) -> NewTemplateResult:
        """Raises InvalidDefinitionsError where FILE is no template, DefinitionStoreError where one exists."""
        settings = installation.settings
        with audited(installation, self.command, self) as audit:
            audit.about([("template", self.template)])
            require_changeable(settings, _INSTEAD)
            pack, _, name = self.template.partition("/")
            if not (is_entity_name(pack) and is_entity_name(name)):
                raise UsageError(f"{self.template!r} is not PACK/NAME")
            found = read_packs(settings)
            text, new = self._checked(name)
            path, own = settings.packs / pack / f"{name}.yaml", found.packs.get(pack)
            if own is not None:
                require_change(audit.principal, "change", [own])
                if not own.is_folder:
                    raise DefinitionStoreError(
                        f"pack {pack!r} is installed, and is not changed by commands: {own.folder}"
                    )
                path = own.folder / f"{name}.yaml"
            elif path.parent.exists():
                raise DefinitionStoreError(f"{shown_path(path.parent)} is there, and is no pack")
            path = self._place(found, path, text, new.version)
            changed = not path.exists() or path.read_text() != text
            if changed and not self.dry_run:
                if own is None:
                    path.parent.mkdir(parents=True)
                    write_file(path.parent / PACK_FILE, _pack_text(pack, audit.principal.name))
                write_file(path, text)
            audit.result(changed)
        made = map(MadeEntity.of, made_entities(read_tree(settings.entity_defs)).get(self.template, ()))
        outdated = [one for one in made if one.version != new.version]
        return NewTemplateResult(self.template, shown_path(path), changed, self.dry_run, outdated)

    def _checked(self, name: str) -> tuple[str, Template]:
        """The text of the template, which has no problems, and what it says."""
        files, path = Files(), self.file or Path(f"{name}.yaml")
        try:
            raw = plain_content(path) if self.file else _STARTER.format(name=name).encode()
        except UnfitFileError as error:
            raise InvalidDefinitionsError([Problem(Position(shown_path(path), 1), "", str(error))]) from error
        read_file(path, raw, files)
        found = [parsed_template(one, files.problems) for one in files.documents]
        if files.problems:
            raise InvalidDefinitionsError(files.problems)
        if len(found) != 1 or found[0] is None:
            raise UsageError(f"{shown_path(path)} must have one template")
        if found[0].name != name:
            document = files.documents[0]
            raise InvalidDefinitionsError([document.problem(("name",), f"must be {name!r}, as the command says")])
        return text_of(raw), found[0]

    def _place(self, found: Packs, path: Path, text: str, version: int) -> Path:
        """Where it is written; raises DefinitionStoreError where one is there that must stay."""
        old = found.templates.get(self.template)
        path = old.document.path if old else path
        if not path.exists() or path.read_text() == text:
            return path
        if not self.replace:
            raise DefinitionStoreError(f"template {self.template!r} exists ({shown_path(path)}): give --replace")
        if old is not None and version <= old.template.version:
            message = f"it has version {old.template.version}, and what replaces it has {version}: write a higher one"
            raise DefinitionStoreError(f"template {self.template!r}: {message}")
        if old is not None and sum(one.document.path == path for one in found.templates.values()) > 1:
            raise DefinitionStoreError(
                f"{shown_path(path)} has other templates, too: move {self.template!r} to its own file"
            )
        return path


def _pack_text(name: str, owner: str) -> str:
    return f'kind: pack\nname: {name}\nacl: {{owner: {json.dumps(owner)}, permission: "0755"}}\n'
