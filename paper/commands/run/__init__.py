"""`python -m paper run`: run experiments."""
