"""Pure decisions over entities: which instances exist, what they read and write. Every clock is an argument."""
