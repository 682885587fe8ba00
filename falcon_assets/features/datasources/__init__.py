"""Datasources: what can be reached there, and how its data is read and written."""
