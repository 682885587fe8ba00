"""What a cluster's execute endpoint can be: its configuration, and whether it answers."""
