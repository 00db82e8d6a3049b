"""Streams: one mixture of a few Kalman filters, compiled."""
