"""Quality: whether the data of an instance is right, by the checks of its feed, and what it is like."""
