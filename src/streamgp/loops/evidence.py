"""When one model of outcomes is taken for clearly likelier than another."""

__all__ = ["CLEARLY"]

# By how much the log likelihood of the less usual model must be larger: 20 to 1.
CLEARLY = 3.0
