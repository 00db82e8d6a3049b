"""Parameters of estimators of streams, read as options of a learner."""

from typing import Any

import numpy as np

from streamgp.checks import check_count
from streamgp.errors import OptionError
from streamgp.streams.options import StreamOptions

__all__ = ["read_options"]

_POLICIES = ("auto", "background", "doubling", "never")


def read_options(given: Any, likelihood: Any = "gaussian", **others: Any) -> StreamOptions:
    """Check parameters, and return options of a learner.

    Args:
        given: An estimator, which has them as attributes.
        likelihood: Name or object.
        others: Further options, as they are.
    """
    refit, most_points = _plain(given.refit), _plain(given.num_inducing)
    if isinstance(refit, str) and refit not in _POLICIES:
        raise OptionError(
            f"refit must be 'auto', 'background', 'doubling', 'never' or a number of rows, but is {refit!r}."
        )
    if isinstance(most_points, str) and most_points != "auto":
        raise OptionError(f"num_inducing must be a whole number or 'auto', but is {most_points!r}.")
    limit, warmup = check_count(given.max_inducing, "max_inducing"), check_count(given.warmup, "warmup")
    return StreamOptions(
        most_points=limit if most_points == "auto" else check_count(most_points, "num_inducing"),
        warmup=warmup,
        buffer_size=max(check_count(given.buffer_size, "buffer_size", minimum=10), warmup),
        refit=refit if isinstance(refit, str) else check_count(refit, "refit"),
        half_life=_plain(given.half_life),
        kernel=given.kernel,
        likelihood=likelihood,
        **others,
    )


def _plain(value: Any) -> Any:
    """Return Python's own number for one of NumPy, as grids of options hold."""
    return value.item() if isinstance(value, np.generic) else value
