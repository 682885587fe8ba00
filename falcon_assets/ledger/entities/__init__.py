"""What is known of entities: their status, their definitions, and the workflows of these."""
