"""Reads all definitions and checks them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from falcon_assets.catalog.checked_entities import CheckedEntities, summed_up
from falcon_assets.catalog.checks import check_all
from falcon_assets.catalog.checks.locations import check_schemas
from falcon_assets.catalog.checks.processes import check_programs
from falcon_assets.catalog.declared import parse_documents
from falcon_assets.catalog.kept_entities import keep, key_of
from falcon_assets.catalog.yaml_files.definition_files import shown_path
from falcon_assets.catalog.yaml_files.documents import read_files
from falcon_assets.errors import InvalidDefinitionsError, MissingDefinitionsError, sorted_problems
from falcon_assets.hooks import hooks


def read_checked(root: Path, *, strict: bool, programs: bool, home: Path | None) -> CheckedEntities:
    """Returns the entities; everything else that parsing needs is freed on return, before garbage is collected.

    For the arguments and errors see :func:`falcon_assets.catalog.store.load_entities`.
    """
    files = read_files(root)
    definitions, problems = parse_documents(root, files)
    problems.extend(check_all(definitions))
    if programs:
        problems.extend(check_programs(definitions))
        problems.extend(check_schemas(definitions))
        for found in hooks().definition_problems(definitions=definitions, programs=True):
            problems.extend(found)
    if strict:
        problems = [replace(problem, is_warning=problem.is_doubt) for problem in problems]
    if not all(problem.is_warning for problem in problems):
        raise InvalidDefinitionsError(problems)
    declared = [*definitions.all()]
    if not declared:
        raise MissingDefinitionsError(f"there is no entity definition (*.yaml, *.yml) in the folder {shown_path(root)}")
    found = summed_up([(one.entity, one.document.position()) for one in declared], sorted_problems(problems))
    if home is not None:
        keep(home, root, key_of(root, files.contents), found, [one.document.data for one in declared])
    return found
