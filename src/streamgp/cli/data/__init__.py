"""`streamgp data`: fetch and show data sets."""
