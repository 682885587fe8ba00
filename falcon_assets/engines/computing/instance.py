"""What a workflow is told about the process instance that it computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Instance:
    """The third argument of ``run(spark, inputs, instance)``.

    Attributes:
        process: Name of the process.
        cluster: Name of the cluster it runs on.
        nominal_time: The instance's time, aware, in UTC.
        properties: Properties of the cluster and of the process, the latter winning.
        inputs: Input name -> folders of its instances, oldest first.
        outputs: Output name -> folder in staging; what ``run`` returns is written there, so most workflows ignore it.
    """

    process: str
    cluster: str
    nominal_time: datetime
    properties: Mapping[str, str]
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, str]
