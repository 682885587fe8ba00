"""Collectors, coordinators and late arrival: from sensors, and in the foreground."""
