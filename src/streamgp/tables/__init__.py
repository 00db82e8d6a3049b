"""Tables: cells, rows one after the other, and whole files."""
