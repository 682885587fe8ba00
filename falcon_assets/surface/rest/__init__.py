"""REST: each operation of the registry as a path and a method, described by OpenAPI."""
