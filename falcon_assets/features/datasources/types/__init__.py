"""Types of datasources, a module or package for each: a new one is a new type."""
