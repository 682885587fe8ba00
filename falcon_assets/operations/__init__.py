"""What commands do to entities and instances: each takes what it needs and says what came of it; nothing is printed."""
