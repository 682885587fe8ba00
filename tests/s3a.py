"""Jars with which Spark reads S3 itself, of the Hadoop that pip's PySpark brings without them."""

from __future__ import annotations

from pathlib import Path

from tests.maven import connector

_SDK = "software.amazon.awssdk"
_VERSION = "${aws-java-sdk-v2.version}"
_STREAMS = "software.amazon.s3.analyticsaccelerator"


def s3a_confs(folder: Path) -> dict[str, str]:
    """Settings of a Spark that has them; fetches them by Maven, into ``folder``."""
    sdk = [(_SDK, artifact, _VERSION) for artifact in ("s3", "s3-transfer-manager", "sts")]
    streams = (_STREAMS, "analyticsaccelerator-s3", "${amazon-s3-analyticsaccelerator-s3.version}")
    return {"spark.jars": ",".join(map(str, connector(folder, "hadoop-aws", *sdk, streams)))}
