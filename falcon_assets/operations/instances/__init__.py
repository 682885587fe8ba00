"""What commands ask about instances."""
