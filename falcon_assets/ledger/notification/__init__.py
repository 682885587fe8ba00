"""What is to be told, and what was told to whom."""
