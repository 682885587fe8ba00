"""Data that workflows really read and write, captured by a listener in Spark's JVM, whose Scala is compiled locally."""
