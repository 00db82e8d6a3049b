"""A few of the rows that a stream has left behind."""

from streamgp.streaming.rows import Rows

__all__ = ["sample_past"]

# Rows that are kept: four for each of the most inducing points that a stream has by default.
_MOST_ROWS = 1024


def sample_past(past: Rows | None, num_past: int, leaving: Rows) -> Rows:
    """A sample of earlier rows and of those that leave the buffer, evenly spread over both.

    Args:
        past: A sample of earlier rows; None if there were none.
        num_past: How many rows it stands for.
        leaving: Rows that leave.
    """
    if past is None:
        return leaving.thinned(_MOST_ROWS).copy()
    share = _MOST_ROWS * leaving.num_rows / (num_past + leaving.num_rows)
    num_leaving = min(leaving.num_rows, max(1, round(share)))
    return past.thinned(_MOST_ROWS - num_leaving).append(leaving.thinned(num_leaving))
