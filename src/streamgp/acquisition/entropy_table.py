"""Expected entropy above a threshold, by interpolation in a table."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.quadrature import gauss_legendre

__all__ = ["EntropyTable", "expected_entropy", "make_table"]

# Standard deviations between these have an entry; others are held at the ends. Means are held this far from the
# threshold, where nothing is left of the entropy.
_LEAST_DEVIATION, _MOST_DEVIATION, _FARTHEST = 0.01, 10.0, 100.0
# Spacing of the means and of the deviations, on their logarithmic axes. Errors fall with its square; the sum of both
# stays below 1e-4, as the tests measure.
_MEAN_STEP, _DEVIATION_STEP = 0.02, 0.03
# A low threshold is far from where the entropy is most curved, at latent values around zero; steps are then smaller by
# the distance in these units.
_CURVED = {"logit": 2.0, "probit": 0.7}
# The Gaussian is cut this many standard deviations out, and the entropy where it falls below 1e-12.
_WIDTH, _ENTROPY_WIDTH = 7.5, 34.0
_NUM_NODES = 48
# Where the axis of the means ends.
_END = math.log1p(_FARTHEST / _LEAST_DEVIATION)


def expected_entropy(
    mean: Float[Tensor, "..."], deviation: Float[Tensor, "..."], *, link: str, latent: float
) -> Float[Tensor, "..."]:
    r"""Evaluate $\mathbb E[1[f > \theta] \, H(p(f))]$ under $f \sim \mathcal N(\mu, s^2)$ by quadrature.

    $H(p) = -p \log p - (1 - p) \log (1 - p)$, and $p$ is the logistic or the normal curve.

    Args:
        mean: $\mu$.
        deviation: $s$, positive.
        link: `"logit"` or `"probit"`.
        latent: $\theta$.
    """
    entropy, end = _ENTROPIES[link], max(latent, 0.0) + _ENTROPY_WIDTH
    low = (mean - _WIDTH * deviation).clamp(latent, end)
    high = (mean + _WIDTH * deviation).clamp(latent, end)
    nodes, weights = gauss_legendre(_NUM_NODES, mean.dtype, mean.device)
    f = low.unsqueeze(-1) + (high - low).unsqueeze(-1) * nodes
    z = (f - mean.unsqueeze(-1)) / deviation.unsqueeze(-1)
    density = torch.exp(-0.5 * z.square()) / (math.sqrt(2.0 * math.pi) * deviation.unsqueeze(-1))
    return (entropy(f) * density) @ weights * (high - low)


@final
@dataclass(frozen=True, eq=False)
class EntropyTable:
    r"""The function $h(\mu, s)$ of `expected_entropy` on a grid.

    Near the threshold $h$ is as steep in $\mu$ as $s$ is small, and away from it as smooth as the entropy is. So the
    grid is even in $\log s$, and in $\pm \log (1 + \lvert \mu - \theta \rvert / \varepsilon)$.

    Attributes:
        latent: The threshold $\theta$.
        values: In single precision, `(1, 1, deviations, means)`.
    """

    latent: float
    values: Float[Tensor, "1 1 i j"]

    def look_up(
        self, distance: Float[Tensor, "i j"], variance: Float[Tensor, "i j"], grid: Float[Tensor, "1 i j 2"]
    ) -> Float[Tensor, "i j"]:
        r"""Interpolate linearly between the nodes.

        Args:
            distance: $\mu - \theta$.
            variance: $s^2$; overwritten.
            grid: Scratch memory.
        """
        size = distance.abs().mul_(1.0 / _LEAST_DEVIATION).log1p_()
        variance.clamp_min_(_LEAST_DEVIATION**2).log_()
        # To [-1, 1], as grid_sample has it; beyond, it takes the values at the edge.
        torch.copysign(size.mul_(1.0 / _END), distance, out=grid[0, ..., 0])
        low, high = 2.0 * math.log(_LEAST_DEVIATION), 2.0 * math.log(_MOST_DEVIATION)
        torch.add(variance.mul_(2.0 / (high - low)), -(high + low) / (high - low), out=grid[0, ..., 1])
        found = torch.nn.functional.grid_sample(self.values, grid, padding_mode="border", align_corners=True)
        return found.squeeze(0).squeeze(0)


@lru_cache(maxsize=8)
def make_table(link: str, latent: float) -> EntropyTable:
    """Fill a table, in a fraction of a second.

    Args:
        link: `"logit"` or `"probit"`.
        latent: The threshold.
    """
    low, high = math.log(_LEAST_DEVIATION), math.log(_MOST_DEVIATION)
    with torch.inference_mode(False), torch.no_grad():
        num_steps = math.ceil(_END / _MEAN_STEP * max(1.0, -latent / _CURVED[link]))
        positions = torch.linspace(-_END, _END, 2 * num_steps + 1, dtype=torch.float64)
        distances = _LEAST_DEVIATION * positions.sign() * positions.abs().expm1()
        logarithms = torch.linspace(low, high, math.ceil((high - low) / _DEVIATION_STEP) + 1, dtype=torch.float64)
        rows = [
            expected_entropy(latent + distances, deviation.expand_as(distances), link=link, latent=latent)
            for deviation in logarithms.exp()
        ]
        return EntropyTable(latent, torch.stack(rows).float()[None, None])


def _logit_entropy(f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The entropy of a coin whose log odds are given, accurate where it is nearly certain."""
    f = f.abs()
    return torch.nn.functional.softplus(-f) + f * torch.sigmoid(-f)


def _probit_entropy(f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    up, down = torch.special.log_ndtr(f), torch.special.log_ndtr(-f)
    return -(up.exp() * up + down.exp() * down)


_ENTROPIES: dict[str, Callable[[Tensor], Tensor]] = {"logit": _logit_entropy, "probit": _probit_entropy}
