"""`streamgp stream`: predict each row of a stream, then learn it."""
