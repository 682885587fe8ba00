from __future__ import annotations

import pytest

from falcon_assets.compute.engines.computing.programs import cause_in

START = """WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/22 08:46:10 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Setting Spark log level to "ERROR".
"""
TASK = """26/11/22 08:47:25 ERROR Executor: Exception in task 2.0 in stage 0.0 (TID 2)
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] Thrown by the worker: Traceback (most recent call last):
  File "/x/app.py", line 5, in <lambda>
    s.range(3).select(udf(lambda x: 1/0)('id'))
                                    ~^~
ZeroDivisionError: division by zero
SQLSTATE: 38000

\tat org.apache.spark.api.python.PythonWorkerUtils$.readBytes(PythonWorkerUtils.scala:211)
\t... 21 more
"""
DRIVER = """Traceback (most recent call last):
  File "/x/app.py", line 9, in <module>
    s.range(3).write.parquet(sys.argv[1])
  File "/venv/site-packages/pyspark/python/lib/pyspark.zip/pyspark/sql/readwriter.py", line 2099, in parquet
"""
MAIN = """Exception in thread "main" java.lang.RuntimeException: cannot load
\tat x.Main$.main(Main.scala:3)
Caused by: java.io.IOException: outer
Caused by: java.net.ConnectException: nobody listens at db:5432
\tat x.Db$.open(Db.scala:9)
\t... 12 more
"""


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        pytest.param(START, [], id="nothing"),
        pytest.param(START + "no flights today\n", ["no flights today"], id="own-words"),
        pytest.param(START + "\n".join(map(str, range(30))), ["25", "26", "27", "28", "29"], id="many-words"),
        pytest.param(
            START + DRIVER + "pyspark.errors.exceptions.captured.AnalysisException: [PATH_NOT_FOUND] Not there: /y. "
            "SQLSTATE: 42K03\n",
            ["[PATH_NOT_FOUND] Not there: /y. (/x/app.py:9)"],
            id="spark-in-the-driver",
        ),
        pytest.param(
            START + TASK * 3 + DRIVER + "pyspark.errors.exceptions.captured.PythonException: Thrown by the worker:\n"
            'Traceback (most recent call last):\n  File "/x/app.py", line 5, in <lambda>\n'
            "ZeroDivisionError: division by zero\n\n" + TASK,
            ["ZeroDivisionError: division by zero (/x/app.py:5)"],
            id="a-function-of-workers",
        ),
        pytest.param(
            START + DRIVER + "ValueError: one\nis two\nI give up\n",
            ["ValueError: one (/x/app.py:9)", "I give up"],
            id="last-words",
        ),
        pytest.param(
            START + '  File "/x/app.py", line 1\n    def x(:\n          ^\nSyntaxError: invalid syntax\n',
            ['  File "/x/app.py", line 1', "    def x(:", "SyntaxError: invalid syntax"],
            id="syntax",
        ),
        pytest.param(
            START + TASK + MAIN,
            ["java.lang.RuntimeException: cannot load", "java.net.ConnectException: nobody listens at db:5432"],
            id="jvm",
        ),
        pytest.param(START + "x" * 10_000, ["x" * 500], id="a-long-line"),
    ],
)
def test_what_a_log_says(log: str, cause: list[str]) -> None:
    assert cause_in(log) == cause
