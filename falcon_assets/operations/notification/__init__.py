"""What receivers are told, and whether they can be."""
