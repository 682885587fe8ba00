"""The ``falcon`` command, one file per noun."""
