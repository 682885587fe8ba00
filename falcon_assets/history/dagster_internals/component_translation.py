"""Translations of assets as Dagster's own integrations have them: attributes in YAML become a function."""

# Not exported at the top: merging and replacing attributes, and templates with the entities, are all in there.
from dagster.components.utils.translation import TranslationFnResolver

__all__ = ["TranslationFnResolver"]
