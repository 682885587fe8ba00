"""Which versions came from which: shown, compared and followed."""
