"""Late data: which changes of what was read matter, and what runs again."""
