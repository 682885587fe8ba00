"""Backups of an installation: its database, its definitions and what its runs left on this machine, in one file."""
