"""Noisy expected improvement in closed form, given values of the points that may be the best so far."""

import math
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import t_batch_mode_transform
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamgp.acquisition.context import Context
from streamgp.gp import SparseProcess
from streamgp.linalg import cholesky, solve_lower
from streamgp.seeds import derived_seed, seeded

__all__ = [
    "NoisyImprovement",
    "SampledProcess",
    "log_expected_improvement",
    "log_probability_between",
    "sample_processes",
    "sparse_processes",
]

# A point that is so many standard deviations below another one is not the best.
_CERTAIN = 4.0
# Joint samples of known points, of which those that are the best in some sample are kept, and most points to sample.
_NUM_DRAWS, _MOST_SAMPLED = 256, 500
_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
# Below the first, terms are rearranged so that none cancels; below the second, two terms of the expansion are exact.
_TAIL, _FAR_TAIL = -1.0, -1e5
# The least variance beside the prior's: rounding of what is left after the subtraction of all that is known.
_LEAST_VARIANCE = 1e-12


@final
class SampledProcess:
    r"""A sparse process given sampled values at some points, ready to be evaluated at others.

    With $k_q(P, P) = L_P L_P^\top$, base samples $\varepsilon_s$ and $V(x) = L_P^{-1} k_q(P, x)$, values are
    $\mu_q(P) + L_P \varepsilon_s$, and given these

    $$
    m_s(x) = \mu_q(x) + V(x)^\top \varepsilon_s, \qquad \sigma^2(x) = k_q(x, x) - V(x)^\top V(x) .
    $$

    All of them are linear in $k(x, [Z, P])$ but for squares, by matrices that are made once.
    """

    def __init__(self, process: SparseProcess, P: Float[Tensor, "p d"], base: Float[Tensor, "s p"]) -> None:
        """Condition on samples.

        Args:
            process: Before.
            P: The points.
            base: Standard normal samples.
        """
        phi = process.features(P)
        reduced = process.variance_reduction @ phi
        prior = process.prior
        covariance = prior.covariance(P, P) - phi.mT @ reduced
        factor, _ = cholesky(covariance, scale=prior.variance(P), name="the covariance of known points")
        eye = torch.eye(len(P), dtype=P.dtype, device=P.device)
        root = solve_lower(factor, eye).mT  # of the inverse, by which k_q(x, P) is multiplied for V
        to_known = torch.cat([-process.cross_weights(reduced) @ root, root])
        whitening = process.inducing_factor.whitening.mT.to(P)
        empty = P.new_zeros(len(P), whitening.shape[-1])
        self.values = process.mean(P) + base @ factor.mT
        self.prior, self.inducing, self.points = prior, process.inducing, P
        self.mean_weights = to_known @ base.mT
        self.mean_weights[: -len(P)] += process.mean_weights.unsqueeze(-1)
        less = torch.cat([torch.cat([whitening, empty]), to_known], dim=-1)
        more = torch.cat([whitening @ process.whitened_root, empty])
        self.squared, self.num_less = torch.cat([less, more], dim=-1), less.shape[-1]

    def moments(self, X: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n s"], Float[Tensor, "n 1"]]:
        """Mean of each sample, and the standard deviation, which they share."""
        K, scale = self.inducing.crossed(X, self.points), self.prior.variance(X)
        mean = self.prior.mean(X).unsqueeze(-1) + K @ self.mean_weights
        squares = (K @ self.squared).square()
        variance = scale - squares[:, : self.num_less].sum(-1) + squares[:, self.num_less :].sum(-1)
        return mean, torch.maximum(variance, _LEAST_VARIANCE * scale).sqrt().unsqueeze(-1)


def sample_processes(
    processes: list[SparseProcess], P: Float[Tensor, "p d"], num_samples: int, *, seed: int
) -> list[SampledProcess]:
    """Sample values of independent processes at the same points.

    Args:
        processes: One for each output.
        P: The points.
        num_samples: How many samples.
        seed: Of a scrambled Sobol sequence.
    """
    o = len(processes)
    base = draw_sobol_normal_samples(len(P) * o, num_samples, dtype=P.dtype, device=P.device, seed=seed)
    base = base.reshape(num_samples, o, len(P))
    return [SampledProcess(one, P, base[:, j]) for j, one in enumerate(processes)]


def sparse_processes(model: Any) -> list[SparseProcess]:
    """The processes of a model of sparse GPs, as loops keep them."""
    processes = [gp.process for gp in model.gps]
    assert all(isinstance(one, SparseProcess) for one in processes)
    return processes


def log_expected_improvement(u: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""Evaluate $h(u) = \log \mathbb E[(u + Z)_+] = \log(\varphi(u) + u \Phi(u))$ for a standard normal $Z$.

    The improvement of $\mathcal N(m, \sigma^2)$ over $b$ is $\log \sigma + h((m - b) / \sigma)$. The gradient
    $\Phi(u) e^{-h(u)}$ is in closed form, too.

    References:
        Ament, Daulton, Eriksson, Balandat, Bakshy (2023), Unexpected improvements to expected improvement for Bayesian
        optimization.
    """
    function: Any = _LogImprovement  # torch leaves `apply` untyped
    return function.apply(u)


class _LogImprovement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor) -> Tensor:
        upper = u.clamp_min(_TAIL)
        bulk = torch.log(torch.exp(-0.5 * upper.square() - _LOG_ROOT) + upper * torch.special.ndtr(upper))
        lower = u.clamp(_FAR_TAIL, _TAIL)
        # 1 + u Phi / phi, by the ratio of Mills; it falls like 1 / u^2.
        share = 1.0 + math.sqrt(0.5 * math.pi) * lower * torch.special.erfcx(-lower / math.sqrt(2.0))
        log_share = torch.where(u < _FAR_TAIL, -2.0 * torch.log(-u.clamp_max(_TAIL)), torch.log(share))
        value = torch.where(u > _TAIL, bulk, -0.5 * u.square() - _LOG_ROOT + log_share)
        ctx.save_for_backward(u, value)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:
        u, value = ctx.saved_tensors
        # Far out both logarithms are about -u^2 / 2, and what is left of their difference is log(-u).
        slope = torch.where(u < _FAR_TAIL, -u, torch.exp(torch.special.log_ndtr(u.clamp_min(_FAR_TAIL)) - value))
        return grad_outputs[0] * slope


def log_probability_between(
    mean: Float[Tensor, "..."], deviation: Float[Tensor, "..."], lower: float | None, upper: float | None
) -> Float[Tensor, "..."]:
    """The logarithm of the probability that a normal value lies between two limits, of which one may be missing.

    Args:
        mean: Of the value.
        deviation: Its standard deviation.
        lower: The least value; None for no such limit.
        upper: The most.
    """
    if lower is None or upper is None:
        z = torch.full_like(mean, math.inf)
        if upper is not None:
            z = (upper - mean) / deviation
        elif lower is not None:
            z = (mean - lower) / deviation
        return torch.special.log_ndtr(z)
    # On the side of the nearer limit, so that both probabilities are small and differ in their logarithms.
    is_above = mean > 0.5 * (lower + upper)
    near = torch.where(is_above, upper - mean, mean - lower) / deviation
    far = torch.where(is_above, lower - mean, mean - upper) / deviation
    log_near, log_far = torch.special.log_ndtr(near), torch.special.log_ndtr(far)
    return log_near + torch.log(-torch.expm1(torch.clamp_max(log_far - log_near, -1e-12)))


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
