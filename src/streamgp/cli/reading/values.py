"""Values of fields: numbers, and the usual words for nothing."""

from streamgp.streaming.fields import check_decimal_points, is_missing, read_number, to_number

__all__ = ["check_decimal_points", "is_missing", "read_number", "to_number"]
