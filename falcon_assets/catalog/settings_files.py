"""Files that variables of the environment name: each is one YAML document of a declared form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, ValidationError

from falcon_assets.catalog.validation import validation_problems
from falcon_assets.catalog.yaml_files.definition_files import UnfitFileError, plain_content, shown_path
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.errors import SettingsError, listed_problems, sorted_problems
from falcon_assets.model.base import Declaration, NonEmpty

D = TypeVar("D", bound=Declaration)


def parts_of_url(url: str) -> SplitResult:
    """Raises ValueError with a port that is none."""
    split = urlsplit(url)
    if split.port == 0:
        raise ValueError("port 0")
    return split


def _address(text: str) -> str:
    split = parts_of_url(text)
    if split.scheme not in ("http", "https") or not split.hostname or split.username or split.query:
        raise ValueError("must be an http or https URL without user and query, such as https://falcon.example.com")
    return text.rstrip("/")


FrontAddress: TypeAlias = Annotated[NonEmpty, AfterValidator(_address)]
"""The address of a front, with its path prefix, without a slash at the end."""


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
