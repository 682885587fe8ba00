"""The component of a ``dg`` project: ``dg scaffold defs falcon_assets.FalconEntities my_pipelines``."""

from datetime import UTC, datetime
from typing import Annotated, Any

import dagster as dg
from pydantic import Field

from falcon_assets import build_definitions
from falcon_assets.first_entities import first_entities
from falcon_assets.history.dagster_internals.component_translation import TranslationFnResolver
from falcon_assets.instances.assets import OpOptions
from falcon_assets.surface.dagster.asset_options import AssetSource, Translation

_FOLDER = "entities"
_FILES = {
    "yaml": (
        "defs.yaml",
        f"""\
type: falcon_assets.FalconEntities

attributes:
  path: {_FOLDER}
""",
    ),
    "python": (
        "component.py",
        f"""\
import dagster as dg

from falcon_assets import FalconEntities


@dg.component_instance
def load(context: dg.ComponentLoadContext) -> FalconEntities:
    return FalconEntities(path="{_FOLDER}")
""",
    ),
}
"""Format -> the file that Dagster loads the component from, and its text."""


class FirstEntities(dg.Scaffolder):
    """Writes the definition of the component, and beside it a cluster, two feeds and a process to begin with."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Writes the files below ``request.target_path``, which is new."""
        name, text = _FILES[request.scaffold_format]
        (request.target_path / name).write_text(text)
        folder = request.target_path / _FOLDER
        folder.mkdir()
        today = datetime.now(UTC).replace(hour=0, minute=0)
        for name, text in first_entities(request.target_path.name, today).items():
            (folder / name).write_text(text)


@dg.scaffold_with(FirstEntities)
class FalconEntities(dg.Component, dg.Model, dg.Resolvable):
    """Clusters, feeds and processes of Apache Falcon, declared in a folder of YAML files."""

    path: str = Field(
        default=_FOLDER, description="The folder of the definitions, relative to the folder of this component."
    )
    translation: Annotated[
        Translation | None,
        TranslationFnResolver[AssetSource](vars),
        Field(description="How assets are shown; templates know spec, cluster, feed and process."),
    ] = None
    select: str = Field(default="*", description="The assets to load, as an asset selection of Dagster.")
    exclude: str = Field(default="", description="The assets to leave out of these, as an asset selection of Dagster.")
    op: OpOptions = Field(default=OpOptions(), description="Concurrency pool and tags of the ops.")

    def get_asset_spec(self, spec: dg.AssetSpec, source: AssetSource) -> dg.AssetSpec:
        """Returns how an asset is shown; a subclass may override it."""
        return self.translation(spec, source) if self.translation else spec

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Loads and checks the folder, and builds its assets, jobs, schedules, sensors and resources."""
        folder = context.path if context.path.is_dir() else context.path.parent
        return build_definitions(
            folder / self.path,
            translation=self.get_asset_spec,
            select=self.select,
            exclude=self.exclude,
            op=self.op,
        )
