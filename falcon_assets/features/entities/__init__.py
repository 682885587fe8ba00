"""What people do to entities: submit, update, schedule, restore, list."""
