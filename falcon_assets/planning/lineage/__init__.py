"""Which versions came from which: pure graph logic."""
