"""Import of Apache Falcon's XML as YAML: keys without a counterpart are reported, none is dropped silently."""
