"""Apache Falcon's XML, converted to YAML: what has no counterpart is named, nothing is dropped in silence."""
