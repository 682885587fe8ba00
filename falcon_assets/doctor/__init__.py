"""Whether this installation is well: one small check for each thing that can be wrong, and what to do about it."""
