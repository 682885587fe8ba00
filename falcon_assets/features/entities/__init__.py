"""Operations on entities: submit, update, schedule, restore, list."""
