"""`streamgp optimize`: a lab notebook without Python."""
