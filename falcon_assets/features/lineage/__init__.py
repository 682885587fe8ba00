"""Which versions came from which, what was made from them, and what may be forgotten."""
