"""The search for the maximum of an acquisition function over the unit cube."""

import warnings
from typing import Any

import torch
from botorch.exceptions.warnings import BotorchWarning
from botorch.optim.optimize import optimize_acqf
from botorch.utils.sampling import manual_seed
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import Search
from streamgp.threads import few_threads

__all__ = ["maximize_in_cube"]


def maximize_in_cube(
    function: Any,
    q: int,
    search: Search,
    *,
    num_dims: int,
    seed: int,
    starts: Float[Tensor, "r a d"] | None = None,
) -> Float[Tensor, "q d"]:
    """Maximise by L-BFGS from several starts; several points one after the other, unless starts for all are given.

    Warnings of BoTorch that a line search ended early are left out: the best point of all starts is returned.

    Args:
        function: Acquisition function of BoTorch.
        q: Number of points.
        search: How much work to do.
        num_dims: Dimension of the cube.
        seed: Of the random starts.
        starts: Where to start; chosen among random points by default.
    """
    bounds = torch.stack([torch.zeros(num_dims), torch.ones(num_dims)]).double()
    options: Any = {"maxiter": search.max_iterations, "batch_limit": search.num_restarts, "seed": seed}
    with few_threads(), warnings.catch_warnings(), manual_seed(seed):
        warnings.simplefilter("ignore", BotorchWarning)
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
        points, _ = optimize_acqf(
            function,
            bounds,
            q=q,
            num_restarts=search.num_restarts,
            raw_samples=None if starts is not None else search.raw_samples,
            batch_initial_conditions=starts,
            sequential=starts is None and q > 1,
            retry_on_optimization_warning=False,
            options=options,
        )
    return points.detach().clamp(0.0, 1.0)
