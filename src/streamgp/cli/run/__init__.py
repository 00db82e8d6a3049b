"""`streamgp run`: run experiments."""
