"""Runs a Python program on a Spark Connect server with all of its settings: ``connect_client.py PROGRAM ARGS...``.

``spark-submit`` passes settings to Python in groups of ten, and PySpark applies the last group only. This script is run
in the program's process, which need not have this package.
"""

from __future__ import annotations

import json
import os
import runpy
import sys

_GROUP = "PYSPARK_REMOTE_INIT_CONF_"


def join_groups(environ: dict[str, str] | os._Environ[str]) -> None:
    count = int(environ.get(f"{_GROUP}LEN", "0"))
    settings: dict[str, str] = {}
    for number in range(count):
        settings.update(json.loads(environ[f"{_GROUP}{number}"]))
    environ[f"{_GROUP}LEN"], environ[f"{_GROUP}0"] = "1", json.dumps(settings)


if __name__ == "__main__":
    join_groups(os.environ)
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH120, PTH100 - as Python itself does
    runpy.run_path(sys.argv[0], run_name="__main__")
