"""Instants, wall clocks, timelines and cron: when things are."""
