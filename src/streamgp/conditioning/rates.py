r"""Averages of responses as rows that are linear in the latent function, around what is believed.

The latent value of an average of responses $\sum_i w_i g(f_i)$ is $s(f) = g^{-1}(\sum_i w_i g(f_i))$. Its statistical
linearization under $f \sim \mathcal N(m, V)$ is $s_0 + h \cdot (f - m)$, where with $\bar s = g^{-1}(\sum_i w_i
\operatorname{E} g(f_i))$

$$
h_i = \frac{w_i \operatorname{E} g'(f_i)}{g'(\bar s)}, \qquad
s_0 = \bar s - \frac{g''(\bar s)}{2 g'(\bar s)} \, h^\top V h .
$$

The belief that it leads to is the next one around which it is taken, until they agree.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.observation import Observation
from streamgp.errors import ConvergenceError, UnsupportedError
from streamgp.evidence import Evidence
from streamgp.gp import AbstractProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.quadrature import expectation

__all__ = ["linearize", "read_rates"]

_NUM_NODES = 20
# Means of pixels move by no more than this share of their deviations in the last round, of so many at most; from the
# fourth on steps are halved, as two beliefs may take turns.
_TOLERANCE, _MOST_ROUNDS, _WHOLE_ROUNDS = 1e-3, 60, 4


class _Curve(NamedTuple):
    """A response with both its derivatives."""

    value: Tensor
    slope: Tensor
    bend: Tensor


def _curve(likelihood: AbstractLikelihood, f: Tensor) -> _Curve:
    with torch.enable_grad():
        f = f.detach().requires_grad_()
        value = likelihood.response(f)
        (slope,) = torch.autograd.grad(value.sum(), f, create_graph=True)
        (bend,) = torch.autograd.grad(slope.sum(), f)
    return _Curve(value.detach(), slope.detach(), bend)


def linearize(
    rows: Evidence,
    likelihood: AbstractLikelihood,
    mean: Float[Tensor, " n"],
    variance: Float[Tensor, " n"],
    process: AbstractProcess,
) -> Evidence:
    """Make rows of averages of responses linear around a belief.

    Args:
        rows: The rows.
        likelihood: Gives the response.
        mean: Latent means of all atoms.
        variance: Their variances.
        process: The belief.
    """
    assert rows.weights is not None
    assert rows.row_of is not None
    expected = expectation(likelihood.response, mean, variance, num_nodes=_NUM_NODES)
    slopes = expectation(lambda f: _curve(likelihood, f).slope, mean, variance, num_nodes=_NUM_NODES)
    center = likelihood.inverse_response(rows.sums(expected))
    curve = _curve(likelihood, center)
    h = rows.weights * slopes / curve.slope[rows.row_of]
    turned = rows.linear(h, torch.zeros_like(center))
    spread = process.variance(turned).clamp_min(0.0)
    offsets = center - 0.5 * curve.bend / curve.slope * spread - turned.sums(mean)
    # A response alone is one of its own latent value, whatever is believed.
    is_alone = torch.bincount(rows.row_of, minlength=rows.num_rows) == 1
    is_value = is_alone[rows.row_of] & (rows.weights == 1.0)
    return rows.linear(torch.where(is_value, 1.0, h), torch.where(is_alone, 0.0, offsets))


def read_rates(
    process: AbstractProcess, observation: Observation, step: Callable[[Observation], AbstractProcess]
) -> Observation:
    """Observations of linear rows in the place of averages of responses; others as they are.

    Args:
        process: What is believed before.
        observation: What was observed.
        step: Conditions that belief on an observation of linear rows.
    """
    rows, likelihood = observation.inputs, observation.likelihood
    if not isinstance(rows, Evidence) or not rows.is_rate:
        return observation
    if likelihood is None or not likelihood.has_response or process.batch_shape or observation.targets.dim() > 1:
        raise UnsupportedError(
            "Averages of rates are observed through a likelihood with a response, such as Poisson(population), by one "
            "GP at a time and without fantasies. Pass likelihood=..., or average latent values with rates=False."
        )
    if rows.row_of is None:  # values alone, which are their own rates
        return replace(observation, inputs=replace(rows, is_rate=False))
    with torch.no_grad():
        X = rows.points
        current = process
        mean, variance = current.mean(X), current.variance(X).clamp_min(torch.finfo(X.dtype).tiny)
        for count in range(_MOST_ROUNDS):
            linear = replace(observation, inputs=linearize(rows, likelihood, mean, variance, current))
            current = step(linear)
            new_mean, new_variance = current.mean(X), current.variance(X).clamp_min(torch.finfo(X.dtype).tiny)
            change = float(((new_mean - mean).abs() / new_variance.sqrt()).max())
            if change <= _TOLERANCE:
                return linear
            share = 1.0 if count < _WHOLE_ROUNDS else 0.5
            mean, variance = mean + share * (new_mean - mean), variance + share * (new_variance - variance)
    raise ConvergenceError(
        f"Averages of rates were not settled after {_MOST_ROUNDS} rounds: means still move by {change:.2g} of their "
        "deviations.",
        advice="Check targets and populations, or observe fewer rows at a time.",
    )
