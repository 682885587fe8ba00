"""What workflows really read and wrote, as a listener in Spark's JVM sees it; its Scala is compiled where it runs."""
