"""Putting what was written in its place, complete and with its flag: by renaming, or by the flag alone."""
