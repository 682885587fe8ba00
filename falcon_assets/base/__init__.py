"""What every folder may use: texts, files, locks, signals; nothing of clusters, feeds and processes."""
