"""Versions of feed instances and what they were made from: asked, searched, protected, let go."""
