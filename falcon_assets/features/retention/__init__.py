"""What goes from the clusters, what stays, and why."""
