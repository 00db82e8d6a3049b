"""`streamgp survey`: choose which places to survey next."""
