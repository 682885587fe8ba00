"""Decides, in sensors and in the foreground, which runs to start now."""
