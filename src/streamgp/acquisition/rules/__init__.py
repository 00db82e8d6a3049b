"""Rules: how the next points are chosen, as objects with their options as fields."""
