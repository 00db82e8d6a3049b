"""`python -m paper data`: fetch and show data sets."""
