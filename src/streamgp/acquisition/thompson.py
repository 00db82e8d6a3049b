"""Thompson sampling on candidates."""

import torch
from botorch.models.model import Model
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.samplers import read_sampler
from streamgp.acquisition.space import CandidateSource, read_candidates
from streamgp.checks import check_count

__all__ = ["best_of_each", "thompson_sampling"]


@torch.no_grad()
def thompson_sampling(
    model: Model,
    candidates: CandidateSource,
    *,
    q: int = 1,
    num_candidates: int = 5000,
    sampling: str = "auto",
    maximize: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Choose the best candidates of functions drawn from a model.

    Args:
        model: `OnlineGP`, or another BoTorch model with Gaussian posteriors; of one output.
        candidates: A set `(n, d)`, or a function that draws one of a given number of points.
        q: Number of functions, each of which gives one point.
        num_candidates: How many to ask the function for.
        sampling: `"joint"` draws exactly at a cost that is cubic in the number of candidates, `"paths"` by 1024 random
            features at a linear one, `"auto"` jointly up to 1000 candidates.
        maximize: Whether large values are wanted, or small ones.
        generator: Source of randomness.

    Returns:
        Points `(q, d)`, all different candidates.
    """
    sampler = read_sampler(model, sampling, maximize=maximize)
    C = read_candidates(candidates, num_candidates, at_least=check_count(q, "q"))
    samples = sampler.sample(C[:0], C, num_samples=q, generator=generator)
    return C[best_of_each(samples.at_candidates)]


def best_of_each(samples: Float[Tensor, "s n"]) -> Int[Tensor, " s"]:
    """The best candidate of each sample in turn, without those that were taken before."""
    is_taken = torch.zeros(samples.shape[-1], dtype=torch.bool, device=samples.device)
    chosen = []
    for sample in samples:
        best = sample.masked_fill(is_taken, -torch.inf).argmax()
        is_taken[best] = True
        chosen.append(best)
    return torch.stack(chosen)
