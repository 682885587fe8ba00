"""Definition files: found, read as YAML with positions, changed all or none with their comments kept."""
