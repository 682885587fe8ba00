"""File access where file systems differ."""
