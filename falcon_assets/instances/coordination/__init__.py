"""Which runs to start now, decided from sensors and in the foreground."""
