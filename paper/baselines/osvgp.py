"""O-SVGP: the uncollapsed streaming bound, followed by one step of Adam for every row."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.baselines.osgpr import GPYTORCH_START, StreamBlocks
from paper.baselines.streaming_bound import StreamParameters

__all__ = ["OSVGPState", "ValueBelief", "stream_osvgp", "uncollapsed_bound"]

# Rates of the paper's code: kernel and noise, then inducing points and q; in the first fit and along the stream.
_FIRST_RATES = (0.1, 0.01)
_STREAM_RATES = (1e-3, 1e-4)


@final
@dataclass(frozen=True, eq=False)
class ValueBelief:
    """What is believed of values at inducing points, and what their prior was.

    Attributes:
        points: Inducing points.
        mean: Mean of their values.
        root: A triangular root of the covariance.
        prior: Covariance a priori.
    """

    points: Float[Tensor, "m d"]
    mean: Float[Tensor, " m"]
    root: Float[Tensor, "m m"]
    prior: Float[Tensor, "m m"]


@final
@dataclass(frozen=True, eq=False)
class OSVGPState:
    """What O-SVGP knows after some rows.

    Attributes:
        num_seen: Number of rows since the first fit.
        parameters: Learned parameters, cut off from gradients.
        belief: Of the values at the inducing points.
    """

    num_seen: int
    parameters: StreamParameters
    belief: ValueBelief

    def predict(self, X: Float[Tensor, "n d"]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Mean and variance of the latent function."""
        A = torch.linalg.solve(self.belief.prior, self.parameters.kernel(self.belief.points, X)).mT
        explained = (A * self.parameters.kernel(X, self.belief.points)).sum(-1)
        spread = (A @ self.belief.root).square().sum(-1)
        return A @ self.belief.mean, (1.0 - explained + spread).clamp_min(0.0)


def uncollapsed_bound(
    parameters: Any,
    q: tuple[Float[Tensor, " m"], Float[Tensor, "m m"]],
    old: ValueBelief | None,
    *,
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    jitter: float,
    beta: float = 1.0,
) -> Float[Tensor, ""]:
    r"""Bound the log density of new observations, given what was believed before them.

    $$
    \mathbb E_q \log p(y \mid f) - \beta \operatorname{KL}(q(u) \| p(u))
    - \beta [\operatorname{KL}(q(a) \| q'(a)) - \operatorname{KL}(q(a) \| p'(a))]
    $$

    with $a$ the values at the old points, $q'$ what was believed of them and $p'$ their prior then.

    Args:
        parameters: Kernel, variance, noise and inducing points, as `StreamParameters` has them.
        q: Mean and triangular root of the covariance of the values $u$ at the inducing points.
        old: What was believed before; None if there is nothing.
        X: Inputs of the new observations.
        y: Targets.
        jitter: Added to the diagonal of kernel matrices.
        beta: Weight of all divergences.

    References:
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
    """
    mean, root = q
    Z, noise = parameters.points, parameters.log_noise.exp()
    K = parameters.kernel(Z, Z) + jitter * torch.eye(len(Z), dtype=Z.dtype)
    L = torch.linalg.cholesky(K)
    A = torch.cholesky_solve(parameters.kernel(Z, X), L).mT
    variance = parameters.variance - (A * parameters.kernel(X, Z)).sum(-1) + (A @ root).square().sum(-1)
    errors = (y - A @ mean).square() + variance
    expected = -0.5 * (errors.sum() / noise + len(y) * (2.0 * math.pi * noise).log())
    divergence = _divergence(mean, root, L)
    if old is not None:
        divergence = divergence + _online_term(parameters, (mean, root), old, L, jitter)
    return expected - beta * divergence


def _divergence(
    mean: Float[Tensor, " m"], root: Float[Tensor, "m m"], prior_root: Float[Tensor, "m m"]
) -> Float[Tensor, ""]:
    """Divergence of a Gaussian from one of mean zero, both with triangular roots of their covariances."""
    whitened = torch.linalg.solve_triangular(prior_root, torch.cat([root, mean.unsqueeze(-1)], -1), upper=False)
    log_determinants = prior_root.diagonal().square().log().sum() - root.diagonal().square().log().sum()
    return 0.5 * (whitened.square().sum() - len(mean) + log_determinants)


def _online_term(
    parameters: Any,
    q: tuple[Float[Tensor, " m"], Float[Tensor, "m m"]],
    old: ValueBelief,
    L: Float[Tensor, "m m"],
    jitter: float,
) -> Float[Tensor, ""]:
    """By how much more the new belief of the old values differs from the old belief than from their old prior.

    Determinants of the new belief cancel, and what is known of the old ones takes no part in gradients.
    """
    mean, root = q
    with torch.no_grad():
        prior_root = torch.linalg.cholesky(old.prior)
        precision, prior_precision = (torch.cholesky_inverse(each) for each in (old.root, prior_root))
        log_determinants = 2.0 * (old.root.diagonal().abs().log().sum() - prior_root.diagonal().log().sum())
    cross = parameters.kernel(parameters.points, old.points)
    A = torch.cholesky_solve(cross, L).mT
    prior = parameters.kernel(old.points, old.points) + jitter * torch.eye(len(old.points), dtype=L.dtype)
    spread = A @ root
    S = prior - A @ cross + spread @ spread.mT
    a = A @ mean
    error = a - old.mean
    squares = error @ precision @ error - a @ prior_precision @ a
    return 0.5 * (((precision - prior_precision) * S).sum() + squares + log_determinants)


def stream_osvgp(
    X: Float[Tensor, "n d"], y: Float[Tensor, " n"], blocks: StreamBlocks, *, jitter: float, beta: float = 1.0
) -> Iterator[OSVGPState]:
    """Learn a stream, and yield the state after the first fit and after every block.

    Args:
        X: Inputs in the order of their arrival.
        y: Targets.
        blocks: How they are cut up. For a block of b rows there are b steps.
        jitter: Added to the diagonal of kernel matrices.
        beta: Weight of divergences along the stream; the first fit has them whole.
    """
    m = blocks.num_inducing
    level = X.new_tensor(math.log(GPYTORCH_START))
    start = (level.clone(), level.clone(), X[:m].clone())
    parameters = StreamParameters(*(value.requires_grad_(True) for value in start))
    mean, raw = X.new_zeros(m).requires_grad_(True), torch.eye(m, dtype=X.dtype).requires_grad_(True)

    def adam(rates: tuple[float, float]) -> torch.optim.Adam:
        slow = [parameters.points, mean, raw]
        fast = [parameters.log_lengthscale, parameters.log_noise]
        return torch.optim.Adam([{"params": fast, "lr": rates[0]}, {"params": slow, "lr": rates[1]}])

    def learn(old: ValueBelief | None, rows: slice, *, steps: torch.optim.Adam, num_steps: int) -> ValueBelief:
        for _ in range(num_steps):
            steps.zero_grad()
            weight = 1.0 if old is None else beta
            bound = uncollapsed_bound(
                parameters, (mean, raw.tril()), old, X=X[rows], y=y[rows], jitter=jitter, beta=weight
            )
            (-bound / (m + blocks.block)).backward()
            steps.step()
        with torch.no_grad():
            points = parameters.points.detach().clone()
            prior = parameters.kernel(points, points) + jitter * torch.eye(m, dtype=X.dtype)
            return ValueBelief(points, mean.detach().clone(), raw.detach().tril(), prior)

    def state(num_seen: int, belief: ValueBelief) -> OSVGPState:
        lengthscale, noise = parameters.log_lengthscale.detach().clone(), parameters.log_noise.detach().clone()
        return OSVGPState(num_seen, StreamParameters(lengthscale, noise, belief.points), belief)

    belief = learn(None, slice(blocks.num_first), steps=adam(_FIRST_RATES), num_steps=blocks.num_first_steps)
    yield state(0, belief)
    steps = adam(_STREAM_RATES)
    for start_row in range(blocks.num_first, len(y), blocks.block):
        rows = slice(start_row, start_row + blocks.block)
        belief = learn(belief, rows, steps=steps, num_steps=blocks.block)
        yield state(min(rows.stop, len(y)) - blocks.num_first, belief)
