"""Times in words."""

__all__ = ["show_duration"]


def show_duration(seconds: float) -> str:
    """A time as people say it: `40 s`, `12 min`, `3.5 h`, `4 days`."""
    if seconds < 1.0:
        return "under 1 s"
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    if seconds < 100.0 * 60.0:
        return f"{seconds / 60.0:.0f} min"
    if seconds < 48.0 * 3600.0:
        return f"{seconds / 3600.0:.3g} h"
    return f"{seconds / 86400.0:.3g} days"
