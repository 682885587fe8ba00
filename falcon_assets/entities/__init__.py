"""State of entities beyond their definitions: status, versions of definitions, workflows."""
