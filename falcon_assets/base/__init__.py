"""Tools for every folder: texts, files, locks, signals; nothing of clusters, feeds and processes."""
