"""Templates: entities with parameters, in packs that have an owner."""
