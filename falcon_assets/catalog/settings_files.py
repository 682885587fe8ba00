"""Files that variables of the environment name: each is one YAML document of a declared form."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from falcon_assets.catalog.validation import validation_problems
from falcon_assets.catalog.yaml_files.definition_files import UnfitFileError, plain_content, shown_path
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.errors import SettingsError, listed_problems, sorted_problems
from falcon_assets.model.base import Declaration

D = TypeVar("D", bound=Declaration)


def read_settings_file(variable: str, path: Path, kind: type[D], consequence: str) -> D:
    """Reads the file at ``path``, which ``variable`` names.

    Raises:
        SettingsError: it cannot be read, or has problems, each with its line; the text has the ``consequence``.
    """
    files = Files()
    try:
        read_file(path, plain_content(path), files)
    except UnfitFileError as error:
        raise SettingsError(f"{variable}: {shown_path(path)}: {error}") from error
    if not files.problems and len(files.documents) != 1:
        raise SettingsError(f"{variable}: {shown_path(path)} must have one document, and has {len(files.documents)}")
    if not files.problems:
        (document,) = files.documents
        try:
            return kind.model_validate(document.data)
        except ValidationError as error:
            files.problems += validation_problems(document, kind, error)
    listed = listed_problems(sorted_problems(files.problems))
    raise SettingsError("\n".join([f"{variable}: {consequence}:", *listed]))
