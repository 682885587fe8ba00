"""HDFS: its rename is atomic, and there are no locks that die with their holder."""
