"""Noisy expected hypervolume improvement in closed form, given values of the points that may be in the Pareto set."""

import math
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from botorch.utils.multi_objective.pareto import is_non_dominated
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition.context import Context
from streamgp.acquisition.noisy_improvement import (
    log_expected_improvement,
    log_probability_between,
    sample_processes,
    sparse_processes,
)
from streamgp.seeds import derived_seed, seeded

__all__ = ["NoisyHypervolume"]

# Joint samples of known points, of which those in the Pareto set of some sample are kept, and most points to sample.
_NUM_DRAWS, _MOST_SAMPLED = 32, 500
# Instead of infinity, whose product with a gradient of zero has no value.
_FAR = 1e8
# A cell whose two ends are worth the same to so many digits is empty.
_LEAST_SHARE = 1e-13


@final
class NoisyHypervolume(AcquisitionFunction):
    r"""The logarithm of the expected growth of the volume that the Pareto set dominates, whose values are uncertain.

    Values $f_s$ at known and pending points are sampled. What the Pareto set of a sample leaves above the reference
    point is cut into boxes $[l_c, u_c]$. Given the sample, the objectives at $x$ are independent and normal, and with
    $\psi_j(a) = \mathbb E[(f_j(x) - a)_+ \mid f_s]$ and the probability $p_s(x)$ that all limits are kept

    $$
    \log \frac1S \sum_s p_s(x) \sum_c \prod_j \left( \psi_j(l_{cj}) - \psi_j(u_{cj}) \right)
    $$

    needs no samples at $x$.

    References:
        Daulton, Balandat, Bakshy (2021), Parallel Bayesian optimization of multiple noisy objectives with expected
        hypervolume improvement.
        Yang, Emmerich, Deutz, Bäck (2019), Efficient computation of expected hypervolume improvement using box
        decomposition algorithms.
    """

    def __init__(self, context: Context, reference: Float[Tensor, " k"], *, num_samples: int, seed: int) -> None:
        """Sample values of what is known.

        Args:
            context: With an `OnlineGP` of sparse processes.
            reference: Values of the objectives, to be maximized, above which volume counts.
            num_samples: Number of samples $S$.
            seed: Of the samples.
        """
        super().__init__(model=context.model)
        self.objective, self.reference = context.objective, reference
        self.num_samples, self.seed = num_samples, seed
        self.processes = sparse_processes(context.model)
        with torch.no_grad():
            self.rivals = self._contenders(context.baseline)
        self.set_X_pending(context.pending_or_none)

    @torch.no_grad()
    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802 # as BoTorch calls it
        """Take other points for pending."""
        pending: Any = None if X_pending is None else X_pending.detach().clone()
        self.X_pending = pending
        P = self.rivals if pending is None else torch.cat([self.rivals, pending])
        self.outputs = sample_processes(self.processes, P, self.num_samples, seed=derived_seed(self.seed, 0))
        samples = torch.stack([one.values for one in self.outputs], dim=-1)
        scores, is_feasible = self.objective.scores(samples), self.objective.violation(samples) <= 0.0
        cells = [
            FastNondominatedPartitioning(self.reference, row[kept]).get_hypercell_bounds()
            for row, kept in zip(scores, is_feasible, strict=True)
        ]
        most = max(one.shape[-2] for one in cells)
        # Boxes without volume make all samples have as many.
        shape = (self.num_samples, most, self.objective.num_objectives)
        self.lower, self.upper = (torch.full(shape, _FAR, dtype=P.dtype, device=P.device) for _ in range(2))
        self.is_empty = torch.ones(shape[:2], dtype=torch.bool, device=P.device)
        for s, (low, high) in enumerate(cells):
            self.lower[s, : len(low)], self.upper[s, : len(low)] = low, high.clamp_max(_FAR)
            self.is_empty[s, : len(low)] = False

    def _contenders(self, baseline: Float[Tensor, "n d"]) -> Float[Tensor, "p d"]:
        """Known points that are in the Pareto set with a probability that is not negligible."""
        posterior: Any = self.model.posterior(baseline)
        upper = self.objective.scores(posterior.mean + 2.0 * posterior.variance.sqrt())
        order = (upper - self.reference).amin(-1).argsort(descending=True)[:_MOST_SAMPLED]
        points, generator = baseline[order], seeded(self.seed, 1)
        samples = torch.stack([one.sample(points, _NUM_DRAWS, generator) for one in self.processes], dim=-1)
        scores = self.objective.scores(samples)
        is_wanted = (self.objective.violation(samples) <= 0.0) & (scores > self.reference).all(-1)
        is_kept: Bool[Tensor, " n"] = torch.zeros(len(points), dtype=torch.bool, device=points.device)
        for row, wanted in zip(scores, is_wanted, strict=True):
            index = wanted.nonzero().squeeze(-1)
            is_kept[index[is_non_dominated(row[index])]] = True
        return points[is_kept] if is_kept.any() else points[:1]

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type] # BoTorch asks for its base class
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at points `(*b, 1, d)`."""
        rows, k = X.reshape(-1, X.shape[-1]), self.objective.num_objectives
        volume = torch.zeros(len(rows), *self.is_empty.shape, dtype=X.dtype, device=X.device)
        for j, (weight, output) in enumerate(zip(self.objective.weights, self.outputs[:k], strict=True)):
            mean, deviation = output.moments(rows)
            score, deviation = (weight * mean).unsqueeze(-1), deviation.unsqueeze(-1)
            log_lower = log_expected_improvement((score - self.lower[..., j]) / deviation)
            log_upper = log_expected_improvement((score - self.upper[..., j]) / deviation)
            share = -torch.expm1((log_upper - log_lower).clamp_max(-_LEAST_SHARE))
            volume = volume + deviation.log() + log_lower + share.log()
        value = volume.masked_fill(self.is_empty, -math.inf).logsumexp(-1)
        for limits, output in zip(self.objective.limits, self.outputs[k:], strict=True):
            mean, deviation = output.moments(rows)
            value = value + log_probability_between(mean, deviation, *limits)
        return (value.logsumexp(-1) - math.log(self.num_samples)).reshape(X.shape[:-2])
