"""Noisy expected improvement in closed form, given values of the points that may be the best so far."""

import math
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.context import Context
from streamgp.acquisition.log_improvement import log_expected_improvement, log_probability_between
from streamgp.acquisition.sampled_process import sample_processes, sparse_processes
from streamgp.seeds import derived_seed, seeded

__all__ = ["NoisyImprovement"]

# A point that is so many standard deviations below another one is not the best.
_CERTAIN = 4.0
# Joint samples of known points, of which those that are the best in some sample are kept, and most points to sample.
_NUM_DRAWS, _MOST_SAMPLED = 256, 500


@final
class NoisyImprovement(AcquisitionFunction):
    r"""The logarithm of the expected improvement over the best known point, whose value is uncertain.

    Values $f_s$ at known and pending points $P$ are sampled. Given these, the value at $x$ is normal, so that with
    means $m_s(x)$, the standard deviation $\sigma(x)$, the best feasible sampled value $b_s$ and the probability
    $p_s(x)$ that all limits are kept

    $$
    \log \frac1S \sum_s p_s(x) \, \mathbb E[(f(x) - b_s)_+ \mid f_s(P)]
    $$

    needs no samples at $x$: it is smooth, and for a single $P$ without noise it is expected improvement itself. What is
    pending counts as known, so that points are chosen one after the other. Where no sampled value is feasible, $b_s$
    is the worst value that is known.

    Of known points, only those that may be the best count; what others tell is in the model already.

    References:
        Letham, Karrer, Ottoni, Bakshy (2019), Constrained Bayesian optimization with noisy experiments.
    """

    def __init__(self, context: Context, *, num_samples: int, seed: int) -> None:
        """Sample values of what is known.

        Args:
            context: With an `OnlineGP` of sparse processes.
            num_samples: Number of samples $S$.
            seed: Of the samples.
        """
        super().__init__(model=context.model)
        self.objective, self.num_samples, self.seed = context.objective, num_samples, seed
        self.processes = sparse_processes(context.model)
        self.rivals = self._contenders(context.baseline)
        self.set_X_pending(context.pending_or_none)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802 # as BoTorch calls it
        """Take other points for pending."""
        pending: Any = None if X_pending is None else X_pending.detach().clone()
        self.X_pending = pending
        with torch.no_grad():
            self._sample(self.rivals if pending is None else torch.cat([self.rivals, pending]))

    def _sample(self, P: Float[Tensor, "p d"]) -> None:
        self.outputs = sample_processes(self.processes, P, self.num_samples, seed=derived_seed(self.seed, 0))
        samples = torch.stack([one.values for one in self.outputs], dim=-1)
        score = self.objective.score(samples)
        is_feasible = self.objective.violation(samples) <= 0.0
        self.best = score.masked_fill(~is_feasible, -self.objective.cost if self.objective.limits else -math.inf).amax(
            -1
        )

    @torch.no_grad()
    def _contenders(self, baseline: Float[Tensor, "n d"]) -> Float[Tensor, "p d"]:
        """Known points that are the best with a probability that is not negligible."""
        posterior: Any = self.model.posterior(baseline)
        mean, deviation = self.objective.score(posterior.mean), posterior.variance[..., 0].sqrt()
        chance = self.objective.feasibility(posterior).prod(-1)
        expected = self.objective.value(posterior)
        # With limits, the surest of all lower bounds is not that of a point that may not be feasible.
        surely = (mean - _CERTAIN * deviation).masked_fill(chance < 0.99, -math.inf).max()
        upper = (mean + _CERTAIN * deviation).masked_fill(chance < 1e-3, -math.inf)
        upper[expected.argmax()] = math.inf
        order = upper.argsort(descending=True)[:_MOST_SAMPLED]
        points = baseline[order[upper[order] >= surely]]
        generator = seeded(self.seed, 1)
        samples = torch.stack([one.sample(points, _NUM_DRAWS, generator) for one in self.processes], dim=-1)
        score = self.objective.score(samples).masked_fill(self.objective.violation(samples) > 0.0, -math.inf)
        kept = torch.unique(score.argmax(-1)[score.amax(-1) > -math.inf])
        return points[kept] if len(kept) else points[:1]

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type] # BoTorch asks for its base class
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at points `(*b, 1, d)`."""
        rows = X.reshape(-1, X.shape[-1])
        mean, deviation = self.outputs[0].moments(rows)
        u = (self.objective.weights[0] * mean - self.best) / deviation
        value = deviation.log() + log_expected_improvement(u)
        for limits, output in zip(self.objective.limits, self.outputs[1:], strict=True):
            mean, deviation = output.moments(rows)
            value = value + log_probability_between(mean, deviation, *limits)
        return (value.logsumexp(-1) - math.log(self.num_samples)).reshape(X.shape[:-2])
