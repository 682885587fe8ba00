"""The Java that Spark runs on, and its environment."""
