"""Late data: which changes of inputs matter, and which instances run again."""
