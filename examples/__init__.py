"""Whole pipelines to try, which the installed package does not carry."""
