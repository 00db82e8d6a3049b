"""Sparse processes given sampled values at points that matter."""

from typing import Any, final

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import SparseProcess
from streamgp.linalg import cholesky, solve_lower

__all__ = ["SampledProcess", "sample_processes", "sparse_processes"]

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
