"""Jars with which Spark reads S3 itself: pip's PySpark has none, and an old package of PyPI has."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

PACKAGE = "sagemaker-pyspark==1.4.5"
JARS = ("hadoop-aws-3.3.1.jar", "aws-java-sdk-bundle-1.11.901.jar")
OLD = {
    "threads.keepalivetime": "60",
    "connection.establish.timeout": "5000",
    "connection.timeout": "200000",
    "connection.ttl": "300000",
    "connection.request.timeout": "0",
    "multipart.purge.age": "86400",
    "fast.upload.buffer": "bytebuffer",
    "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
}
"""What Hadoop 3.5 has by default and these jars, of 3.3, do not understand."""


def s3a_confs(folder: Path) -> dict[str, str]:
    """Settings of a Spark that has them; fetches them by pip, into ``folder``."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "-d", str(folder), PACKAGE]
    subprocess.run(command, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        for member in packed:
            if member.name.rpartition("/")[2] in JARS:
                member.name = member.name.rpartition("/")[2]
                packed.extract(member, folder, filter="data")
    archive.unlink()
    jars = ",".join(str(folder / jar) for jar in JARS)
    return {"spark.jars": jars, **{f"spark.hadoop.fs.s3a.{name}": value for name, value in OLD.items()}}
