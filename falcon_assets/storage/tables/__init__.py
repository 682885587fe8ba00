"""Catalogs of tables: one protocol, and a module for each catalog that fulfils it."""
