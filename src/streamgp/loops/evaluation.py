"""A function, evaluated again and again where a loop suggests it."""

import warnings
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_count, to_double
from streamgp.errors import StreamGPWarning

__all__ = ["BatchRuns", "run_loop"]


@runtime_checkable
class _Loop(Protocol):
    def ask(self, q: int = 1) -> Any: ...

    def tell(self, X: Any, y: Any) -> None: ...


def run_loop(
    loop: _Loop,
    function: Callable[[Any], Any],
    num_evaluations: int,
    *,
    q: int,
    progress: bool,
    num_outcomes: int = 1,
    is_batch: bool = False,
) -> None:
    """Ask, evaluate and tell until the budget is spent.

    A function that raises an exception, or returns a number that is not finite, has failed there: that is told, and
    the loop goes on. Exceptions are shown as warnings.

    Args:
        loop: What suggests points.
        function: Of one point, `(d,)` or a dictionary, in the user's units.
        num_evaluations: Number of calls, failed ones included.
        q: How many points to ask for at a time.
        progress: Show a progress bar.
        num_outcomes: How many the function returns.
        is_batch: Whether the outcomes of points that were asked for together are told together, or each as it comes.
    """
    num_evaluations, q = check_count(num_evaluations, "num_evaluations"), check_count(q, "q")
    from rich.progress import Progress  # needed only here

    with Progress(disable=not progress) as bar:
        task = bar.add_task("evaluations", total=num_evaluations)
        num_done = 0
        while num_done < num_evaluations:
            X = loop.ask(min(q, num_evaluations - num_done))
            rows = []
            for point in X:
                rows.append(_evaluate(function, point, num_outcomes))
                if not is_batch:
                    loop.tell([point] if isinstance(point, dict) else point, rows[-1])
                num_done += 1
                bar.advance(task)
            if is_batch:
                loop.tell(X, torch.cat(rows).squeeze(-1))


class BatchRuns:
    """A loop whose batches are told together, and which can be run by itself."""

    def run(
        self: Any, function: Callable[[Tensor], Any], num_evaluations: int, *, q: int = 10, progress: bool = True
    ) -> Any:
        """Evaluate a function again and again where the optimizer suggests it.

        A function that raises an exception, or returns a number that is not finite, has failed there: that is told, and
        the loop goes on. Exceptions are shown as warnings.

        Args:
            function: Of one point `(d,)`, in the user's units; returns the outcome.
            num_evaluations: Number of calls, failed ones included.
            q: How many points to ask for, and to tell, at a time.
            progress: Show a progress bar.

        Returns:
            The best point.
        """
        run_loop(self, function, num_evaluations, q=q, progress=progress, is_batch=True)
        return self.best()


def _evaluate(function: Callable[[Any], Any], point: Any, num_outcomes: int) -> Float[Tensor, "1 o"]:
    """Outcomes of a point, a row of NaN if the function failed."""
    try:
        outcome = function(dict(point) if isinstance(point, dict) else point.clone())
    except Exception as error:  # whatever the user's function raises, it failed there
        where = point if isinstance(point, dict) else point.tolist()
        message = f"The evaluation at {where} failed with {type(error).__name__}: {error}"
        warnings.warn(message, StreamGPWarning, stacklevel=4)
        return torch.full((1, num_outcomes), torch.nan, dtype=torch.float64)
    row = to_double(outcome, "the result of the function").reshape(1, -1)
    return row if row.isfinite().all() else torch.full_like(row, torch.nan)
