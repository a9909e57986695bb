"""Training over several processes: each owns a range of the entities, and all agree on every step."""
