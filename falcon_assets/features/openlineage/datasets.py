"""Versions of feed instances as datasets of OpenLineage events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    base_subset_dataset,
    column_lineage_dataset,
    dataset_type_dataset,
    dataset_version_dataset,
    datasource_dataset,
    documentation_dataset,
    input_statistics_input_dataset,
    lifecycle_state_change_dataset,
    output_statistics_output_dataset,
    ownership_dataset,
    schema_dataset,
    tags_dataset,
)

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import ExpressionError
from falcon_assets.features.lineage.datasets import DatasetEdge
from falcon_assets.features.openlineage.naming import DatasetName, dataset_at, dataset_of, dataset_of_datasource
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.data_usage import is_rest
from falcon_assets.planning.version_columns import DIRECT, OutputColumns, Source, with_hows

SOURCE = "FALCON"
"""The source of tags; those of users have ``USER``."""
_OPAQUE = "it passed through code that Spark does not look into: more may have gone in"


class Datasets:
    def __init__(self, store: EntityStore, home: Path) -> None:
        """``home`` is the folder of bare endpoints (``FALCON_HOME``)."""
        self._store, self._home = store, home
        self._names: dict[tuple[str, str], DatasetName | None] = {}

    def name(self, feed: str, cluster: str, path: str | None = None) -> DatasetName:
        """Returns the name of a feed on a cluster; that of the path, where the feed is not declared there any more."""
        if (feed, cluster) not in self._names:
            self._names[feed, cluster] = self._declared(feed, cluster)
        found = self._names[feed, cluster]
        if found is None and path and not path.startswith("catalog:"):
            return dataset_at(path)
        return found or DatasetName(f"falcon://{cluster}", feed)

    def inputs(self, versions: Iterable[Version], columns: Mapping[str, OutputColumns]) -> list[InputDataset]:
        """Returns one dataset for each feed and cluster, with all its instances."""
        several: dict[tuple[str, str], list[Version]] = {}
        for one in versions:
            several.setdefault((one.feed, one.cluster), []).append(one)
        return [self._input(own, columns) for own in several.values()]

    def output(
        self,
        version: Version,
        columns: Mapping[str, OutputColumns],
        inputs: Sequence[Version] = (),
        *,
        is_gone: bool = False,
    ) -> OutputDataset:
        """Returns a version that a run made, or, with ``is_gone``, deleted; ``columns`` are by plan."""
        name, facets = self._common([version], columns)
        own = columns.get(version.plan or "")
        if own is not None:
            facets["columnLineage"] = self._column_lineage(own, version.cluster, inputs)
        said: dict[str, Any] = {
            "subset": base_subset_dataset.OutputSubsetOutputDatasetFacet(outputCondition=_subset([version]))
        }
        if is_gone:
            # DROP and TRUNCATE would be about all instances, which receivers forget then.
            change = lifecycle_state_change_dataset.LifecycleStateChange.ALTER
            facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(change)
        else:
            said["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=version.records, size=version.bytes, fileCount=version.files
            )
        return OutputDataset(name.namespace, name.name, facets=facets, outputFacets=said)

    def at(self, path: str) -> OutputDataset:
        """Returns a copy outside of feeds, such as an archive."""
        name = dataset_at(path)
        return OutputDataset(name.namespace, name.name)

    def read_besides(self, places: Iterable[str]) -> list[InputDataset]:
        return [InputDataset(name.namespace, name.name) for name in _known(places)]

    def written_besides(self, places: Iterable[str]) -> list[OutputDataset]:
        return [OutputDataset(name.namespace, name.name) for name in _known(places)]

    def taken(self, edge: DatasetEdge) -> InputDataset:
        """Returns what an import was made from."""
        name, facets = self._of_datasource(edge, write=False)
        counted = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=edge.rows)
        return InputDataset(name.namespace, name.name, facets=facets, inputFacets={"inputStatistics": counted})

    def sent(self, edge: DatasetEdge) -> OutputDataset:
        """Returns what an export was sent to."""
        name, facets = self._of_datasource(edge, write=True)
        counted = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=edge.rows)
        return OutputDataset(name.namespace, name.name, facets=facets, outputFacets={"outputStatistics": counted})

    def _of_datasource(self, edge: DatasetEdge, *, write: bool) -> tuple[DatasetName, dict[str, Any]]:
        declared = self._store.datasources.get(edge.datasource)
        name = dataset_of_datasource(declared, edge.datasource, edge.dataset, write=write)
        uri = name.namespace
        return name, {"dataSource": datasource_dataset.DatasourceDatasetFacet(name=edge.datasource, uri=uri)}

    def _input(self, versions: list[Version], columns: Mapping[str, OutputColumns]) -> InputDataset:
        name, facets = self._common(versions, columns)
        said = {
            "subset": base_subset_dataset.InputSubsetInputDatasetFacet(inputCondition=_subset(versions)),
            "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                rowCount=_sum(one.records for one in versions),
                size=_sum(one.bytes for one in versions),
                fileCount=_sum(one.files for one in versions),
            ),
        }
        return InputDataset(name.namespace, name.name, facets=facets, inputFacets=said)

    def _common(
        self, versions: Sequence[Version], columns: Mapping[str, OutputColumns]
    ) -> tuple[DatasetName, dict[str, Any]]:
        last = versions[-1]
        name = self.name(last.feed, last.cluster, last.path)
        kind = "TABLE" if (last.path or "").startswith("catalog:") else "FILE"
        facets: dict[str, Any] = {
            "dataSource": datasource_dataset.DatasourceDatasetFacet(name=last.cluster, uri=_uri(name)),
            "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet(kind),
        }
        if len(versions) == 1:
            said = f"{format_instant(last.instance)}@{last.version}"
            facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(said)
        plans = [columns[one.plan] for one in versions if one.plan and one.plan in columns]
        if plans:
            fields = [schema_dataset.SchemaDatasetFacetFields(one.name, one.type) for one in plans[-1].each]
            facets["schema"] = schema_dataset.SchemaDatasetFacet(fields)
        feed = self._store.feeds.get(last.feed)
        known = {"feed": last.feed, "cluster": last.cluster}
        return name, facets | _declared_facets(feed, known)

    def _column_lineage(
        self, columns: OutputColumns, cluster: str, inputs: Sequence[Version]
    ) -> column_lineage_dataset.ColumnLineageDatasetFacet:
        places = {one.feed: self.name(one.feed, one.cluster, one.path) for one in inputs}

        def field(
            source: Source, ways: Sequence[str], kind: str, said: str | None
        ) -> column_lineage_dataset.InputField:
            feed, column = source
            of_feed = places.get(feed) or (self.name(feed, cluster) if feed in self._store.feeds else None)
            name = of_feed or dataset_at(feed)
            kinds: list[tuple[str, str | None]]
            kinds = [("DIRECT" if way in DIRECT else "INDIRECT", way) for way in ways] or [(kind, None)]
            how = [column_lineage_dataset.Transformation(*one, said) for one in kinds]
            return column_lineage_dataset.InputField(name.namespace, name.name, column, how)

        of_columns = {}
        for one in columns.each:
            said = _OPAQUE if one.is_opaque else None
            read = [field(source, ways, "DIRECT", said) for source, ways in with_hows(one.inputs, one.how)]
            of_columns[one.name] = column_lineage_dataset.Fields(read, said)
        more = _OPAQUE if columns.are_rows_opaque else None
        decided = with_hows(columns.rows_from or (), columns.rows_how)
        return column_lineage_dataset.ColumnLineageDatasetFacet(
            of_columns, [field(source, ways, "INDIRECT", more) for source, ways in decided]
        )

    def _declared(self, feed: str, cluster: str) -> DatasetName | None:
        declared, where = self._store.feeds.get(feed), self._store.clusters.get(cluster)
        if declared is None or where is None or declared.on(cluster) is None:
            return None
        try:
            return dataset_of(declared, where, self._home)
        except ExpressionError:
            return None


def _declared_facets(feed: Feed | None, known: Mapping[str, str]) -> dict[str, Any]:
    tags = [tags_dataset.TagsDatasetFacetFields(name, value, SOURCE) for name, value in known.items()]
    facets: dict[str, Any] = {}
    if feed is not None:
        tags += [tags_dataset.TagsDatasetFacetFields(name, value, "USER") for name, value in feed.tags.items()]
        tags += [tags_dataset.TagsDatasetFacetFields("group", group, "USER") for group in feed.groups]
        if feed.description:
            facets["documentation"] = documentation_dataset.DocumentationDatasetFacet(feed.description)
        if feed.acl:
            facets["ownership"] = ownership_dataset.OwnershipDatasetFacet([ownership_dataset.Owner(feed.acl.owner)])
    return {**facets, "tags": tags_dataset.TagsDatasetFacet(tags)}


def _known(places: Iterable[str]) -> list[DatasetName]:
    """Returns the datasets at these places; of very many not all are recorded."""
    return list(dict.fromkeys(dataset_at(place) for place in sorted(places) if not is_rest(place)))


def _subset(versions: Sequence[Version]) -> base_subset_dataset.PartitionSubsetCondition:
    return base_subset_dataset.PartitionSubsetCondition(
        [
            base_subset_dataset.Partition(
                {"instance": format_instant(one.instance), "version": one.version}, identifier=one.path
            )
            for one in versions
        ]
    )


def _uri(name: DatasetName) -> str:
    return "file:///" if name.namespace == "file" else name.namespace


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Returns None where not all are known."""
    known = list(numbers)
    return sum(one for one in known if one is not None) if None not in known else None
