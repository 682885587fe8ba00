"""The Spark Connect server that ``falcon spark start`` keeps running."""
