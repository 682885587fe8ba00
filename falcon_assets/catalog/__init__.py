"""From YAML files to a checked set of entities, with every problem at its file and line."""
