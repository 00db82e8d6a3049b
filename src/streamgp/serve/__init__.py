"""`streamgp serve`: what was saved, as a service for programs or as a page for people."""
