"""What runs of instances said."""
