"""Objectives without a closed form for the belief: it is learned together with the hyperparameters."""

import math
from dataclasses import replace
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import SparseProcess
from streamgp.linalg import cholesky
from streamgp.training.features import Features, Observed, observed_features
from streamgp.training.full_batch import Task, ascend
from streamgp.training.lbfgs import Ascent
from streamgp.training.parameters import Hyperparameters
from streamgp.training.priors import Layout
from streamgp.training.result import prior_process

__all__ = [
    "BELIEF_MEAN",
    "BELIEF_ROOT",
    "belief_of",
    "divergence",
    "latent_moments",
    "learn_belief",
    "pack_belief",
    "uncollapsed_bound",
]

BELIEF_MEAN, BELIEF_ROOT = "belief_mean", "belief_root"
# Of 1000 rows of rover, elevators, protein and powerplant, the log density of 1000 others was largest after 0, 200, 200
# and 200 iterations, and less after 400 than after 100 on all four; its sum was largest after 100.
_MOST_ITERATIONS = 100


def learn_belief(
    setting: Hyperparameters, process: SparseProcess, task: Task
) -> tuple[Hyperparameters, SparseProcess, Ascent]:
    """Learn the belief together with the hyperparameters, for objectives in which it has no closed form.

    Starts at the optimum of the bound, and stops early: from some iteration on, what was observed becomes likelier and
    other observations less likely.

    Args:
        setting: Hyperparameters and inducing points at which the bound is largest.
        process: The belief there.
        task: Observations, options and log.
    """
    data, options = task.data, task.options
    belief = pack_belief(process.whitened_mean, process.whitened_root)
    layout, prior = Layout.of(
        replace(setting, extra={**setting.extra, **belief}),
        data,
        options.priors,
        learn_inducing=options.learn_inducing and 0 < len(setting.inducing_points) < len(data.all_inputs),
        extra=dict.fromkeys(belief, (-math.inf, math.inf)),
    )
    space = layout.space()

    def bound(s: Hyperparameters) -> Tensor:
        return uncollapsed_bound(s, data, objective=options.objective, beta=options.beta)

    task.log.history.clear()  # of another objective
    ascent = ascend(
        lambda x: space.evaluate(x, lambda s: bound(s) + prior.log_density(s)),
        space,
        task,
        max_iterations=min(2 * options.most_iterations, _MOST_ITERATIONS),
        num_data=data.num_data,
        gain=0.1,  # from the optimum of the bound the first steps gain little
    )
    setting = space.setting(ascent.x)
    with torch.no_grad():
        m, R = belief_of(setting)
    return setting, prior_process(setting, data.jitter).with_belief(m, R), ascent


def uncollapsed_bound(setting: Hyperparameters, data: Observed, *, objective: str, beta: float) -> Float[Tensor, ""]:
    r"""Evaluate $\sum_i \ell_i - \beta \operatorname{KL}(q(u) \Vert p(u))$ at the belief that the setting holds.

    For `"elbo"` $\ell_i = \mathbb E_q \log p(y_i \mid f_i)$, for `"pll"` $\ell_i = \log \mathbb E_q p(y_i \mid f_i)$.

    References:
        Jankowiak, Pleiss, Gardner (2020), Parametric Gaussian process regressors.
    """
    m, R = belief_of(setting)
    mean, variance = latent_moments(observed_features(setting, data), m, R)
    likelihood = setting.likelihood
    term = likelihood.log_predictive_density if objective == "pll" else likelihood.expected_log_density
    return term(mean, variance, data.targets).sum() - beta * divergence(m, R)


def latent_moments(
    features: Features, whitened_mean: Float[Tensor, " m"], whitened_root: Float[Tensor, "m m"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Mean and variance of the latent value of each observation."""
    mean, variance = _BeliefMoments.apply(features.phi, whitened_mean, whitened_root)  # type: ignore[no-untyped-call]
    return features.mean + mean, features.slack + variance


@final
class _BeliefMoments(torch.autograd.Function):
    r"""$\phi^\top \bar m$ and $\operatorname{diag}(\phi^\top R R^\top \phi)$, with few matrices as large as $\phi$."""

    @staticmethod
    def forward(ctx: Any, phi: Tensor, m: Tensor, R: Tensor) -> tuple[Tensor, Tensor]:
        W = R.mT @ phi
        ctx.save_for_backward(phi, m, R, W)
        return phi.mT @ m, torch.linalg.vector_norm(W, dim=-2).square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        phi, m, R, W = ctx.saved_tensors
        by_mean, by_variance = gradients
        weighted = W * (2.0 * by_variance)
        return torch.addmm(torch.outer(m, by_mean), R, weighted), phi @ by_mean, phi @ weighted.mT


def divergence(whitened_mean: Float[Tensor, " m"], whitened_root: Float[Tensor, "m m"]) -> Float[Tensor, ""]:
    r"""The divergence of $\mathcal N(\bar m, R R^\top)$, $R$ triangular, from $\mathcal N(0, I)$."""
    log_determinant = 2.0 * whitened_root.diagonal().abs().log().sum()
    return 0.5 * (whitened_root.square().sum() + whitened_mean.square().sum() - len(whitened_mean) - log_determinant)


def pack_belief(whitened_mean: Float[Tensor, " m"], whitened_root: Float[Tensor, "m m"]) -> dict[str, Tensor]:
    """Coordinates of a belief: its mean, and the triangular root of its covariance with logarithms on the diagonal."""
    R = whitened_root.double()
    L, _ = cholesky(R @ R.mT, name="the covariance of the belief")
    entries = L - torch.diag(L.diagonal()) + torch.diag(L.diagonal().log())
    rows, columns = torch.tril_indices(*L.shape).unbind(0)
    return {BELIEF_MEAN: whitened_mean.double(), BELIEF_ROOT: entries[rows, columns]}


def belief_of(setting: Hyperparameters) -> tuple[Float[Tensor, " m"], Float[Tensor, "m m"]]:
    """Mean and triangular root of the belief that a setting holds."""
    mean, entries = setting.extra[BELIEF_MEAN], setting.extra[BELIEF_ROOT]
    m = len(mean)
    rows, columns = torch.tril_indices(m, m, device=mean.device).unbind(0)
    raw = mean.new_zeros(m, m).index_put((rows, columns), entries)
    return mean, raw.tril(-1) + torch.diag(raw.diagonal().exp())
