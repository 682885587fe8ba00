"""The workflow engines: Spark SQL files, PySpark functions, programs for spark-submit."""
