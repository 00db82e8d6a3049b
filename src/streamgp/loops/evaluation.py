"""A function, evaluated again and again where a loop suggests it: here, or by workers."""

import math
import os
import time
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any, Protocol, final, runtime_checkable

import torch
from torch import Tensor

from streamgp.checks import check_count, check_positive, to_double
from streamgp.errors import ArgumentTypeError, StreamGPWarning

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
    workers: int | None = None,
    client: Any = None,
    time_limit: float | None = None,
    waiting: Any = (),
    told: Callable[[], Any] | None = None,
) -> None:
    """Ask, evaluate and tell until the budget is spent.

    A function that raises an exception, or returns a number that is not finite, has failed there: that is told, and
    the loop goes on. Exceptions are shown as warnings. Points that were asked for and are not told in the end, as an
    error or the user stopped the run, are not pending any more.

    Args:
        loop: Source of points.
        function: Of one point, `(d,)` or a dictionary, in the user's units.
        num_evaluations: Number of calls, failed ones included.
        q: How many points to ask for at a time; as many as workers are free, if these are more.
        progress: Show a progress bar.
        num_outcomes: How many the function returns.
        is_batch: Whether the outcomes of points that were asked for together are told together, or each as it comes.
        workers: Number of evaluations at the same time; as many as the client has by default.
        client: Executor of `concurrent.futures`, or Dask client, that evaluates; threads by default.
        time_limit: Seconds after which no evaluation begins.
        waiting: Points that are pending already, and are evaluated first.
        told: Called when something was asked for or told; the run ends where it returns True.
    """
    num_evaluations, q = check_count(num_evaluations, "num_evaluations"), check_count(q, "q")
    until = math.inf if time_limit is None else time.monotonic() + check_positive(time_limit, "time_limit")
    from rich.progress import Progress  # needed only here

    queue, running, rows = deque(waiting), dict[Future[Any], Any](), list[tuple[Any, list[float]]]()
    num_begun = 0
    with ExitStack() as stack:
        executor, num_workers = _open_executor(workers, client, stack)
        bar = stack.enter_context(Progress(disable=not progress))
        task = bar.add_task("evaluations", total=num_evaluations)
        is_over = False
        try:
            while True:
                is_over = is_over or time.monotonic() >= until
                while not is_over and num_begun < num_evaluations and len(running) < num_workers:
                    if not queue and is_batch and (running or rows):
                        break  # the batch is not told yet
                    if not queue:
                        free = num_workers - len(running)
                        queue.extend(loop.ask(min(max(q, free), num_evaluations - num_begun)))
                        is_over = bool(told and told())
                    point = queue[0]
                    running[executor.submit(_evaluate, function, _plain(point), num_outcomes)] = point
                    queue.popleft()
                    num_begun += 1
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    row, issue = future.result()
                    point = running.pop(future)
                    if issue:
                        warnings.warn(issue, StreamGPWarning, stacklevel=3)
                    rows.append((point, row))
                    bar.advance(task)
                if is_batch and (running or (queue and not is_over and num_begun < num_evaluations)):
                    continue
                is_over = _tell(loop, rows, told, is_batch=is_batch) or is_over
        finally:
            for future in running:
                future.cancel()
            left = [*queue, *running.values(), *(point for point, _ in rows)]
            if left and hasattr(loop, "cancel"):
                loop.cancel(left if isinstance(left[0], dict) else torch.stack(left))


def _tell(loop: _Loop, rows: list[tuple[Any, list[float]]], told: Callable[[], Any] | None, *, is_batch: bool) -> bool:
    """Tell what was evaluated, and forget it here; return whether the run is to end."""
    is_over = False
    if is_batch:
        loop.tell(torch.stack([point for point, _ in rows]), torch.tensor([row for _, row in rows]).squeeze(-1))
        rows.clear()
        return bool(told and told())
    while rows:
        point, row = rows[0]
        loop.tell([point] if isinstance(point, dict) else point, torch.tensor([row], dtype=torch.float64))
        rows.pop(0)
        is_over = bool(told and told()) or is_over
    return is_over


@final
class _Here(Executor):
    """Evaluates at once, in this thread."""

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **options))
        return future


def _open_executor(workers: int | None, client: Any, stack: ExitStack) -> tuple[Executor, int]:
    """The executor, and how many evaluations it takes at a time."""
    num_workers = None if workers is None else check_count(workers, "workers")
    if client is None and num_workers is None:
        return _Here(), 1
    if client is None:
        assert num_workers is not None
        return stack.enter_context(ThreadPoolExecutor(num_workers)), num_workers
    if hasattr(client, "get_executor"):  # of Dask; the same point may be evaluated again
        return client.get_executor(pure=False), num_workers or max(sum(client.nthreads().values()), 1)
    if not isinstance(client, Executor):
        raise ArgumentTypeError(
            f"client must be an executor of concurrent.futures or a client of Dask, but is a {type(client).__name__}. "
            "Write client=ProcessPoolExecutor(8), or workers=8 for threads."
        )
    return client, num_workers or getattr(client, "_max_workers", None) or os.cpu_count() or 1


class BatchRuns:
    """A loop whose batches are told together, and which can be run by itself."""

    def run(
        self: Any,
        function: Callable[[Tensor], Any],
        num_evaluations: int,
        *,
        q: int = 10,
        progress: bool = True,
        workers: int | None = None,
        client: Any = None,
        time_limit: float | None = None,
    ) -> Any:
        """Evaluate a function again and again where the optimizer suggests it.

        A function that raises an exception, or returns a number that is not finite, has failed there: that is told, and
        the loop goes on. Exceptions are shown as warnings.

        Args:
            function: Of one point `(d,)`, in the user's units; returns the outcome.
            num_evaluations: Number of calls, failed ones included.
            q: How many points to ask for, and to tell, at a time.
            progress: Show a progress bar.
            workers: Number of evaluations of a batch at the same time.
            client: Executor of `concurrent.futures`, or Dask client, that evaluates; threads by default.
            time_limit: Seconds after which no evaluation begins.

        Returns:
            The best point.
        """
        options: dict[str, Any] = {"workers": workers, "client": client, "time_limit": time_limit}
        run_loop(self, function, num_evaluations, q=q, progress=progress, is_batch=True, **options)
        return self.best()


def _plain(point: Any) -> Any:
    """A point of its own, which the function may change."""
    return dict(point) if isinstance(point, dict) else torch.as_tensor(point).clone()


def _evaluate(function: Callable[[Any], Any], point: Any, num_outcomes: int) -> tuple[list[float], str]:
    """Outcomes of a point, NaN if the function failed, and a sentence if it raised an exception."""
    where = point if isinstance(point, dict) else point.tolist()
    failed = [math.nan] * num_outcomes
    try:
        outcome = function(point)
    except Exception as error:  # whatever the user's function raises, it failed there
        return failed, f"The evaluation at {where} failed with {type(error).__name__}: {error}"
    row = to_double(outcome, "the result of the function").reshape(-1)
    return (row.tolist() if bool(row.isfinite().all()) else failed), ""
