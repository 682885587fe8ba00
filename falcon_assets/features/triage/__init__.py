"""Triage: causes of a missing instance, from what it lacks to what brings that."""
