"""Imports and exports: feeds that are made from datasources, and delivered to them."""
