"""Breaches of SLAs: those that happened, and those that are about to."""
