"""The Spark session of this process, and what an instance adds to its own."""
