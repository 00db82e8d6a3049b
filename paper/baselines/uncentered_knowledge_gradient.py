"""Knowledge gradient whose pseudo-data lacks the prior mean, as in the paper's code."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import torch
from botorch.models.model import Model
from botorch.sampling.base import MCSampler
from torch import Tensor

from streamgp.acquisition import AbstractRule, KnowledgeGradient
from streamgp.acquisition.context import Context
from streamgp.conditioning import SparseGP
from streamgp.linalg import apply, solve_vector
from streamgp.models import OnlineGP

__all__ = ["UncenteredKnowledgeGradient", "uncentered"]


@final
@dataclass(frozen=True)
class UncenteredKnowledgeGradient(AbstractRule):
    """Knowledge gradient with a mistake of the paper's code, to find out what it did.

    There, pseudo-targets of a sparse GP are not shifted by its constant mean, while fantasies are: conditioned on them,
    the model is too low by the constant at all that was observed before, but not at the new inputs.

    Attributes:
        num_fantasies: As in `KnowledgeGradient`.
    """

    num_fantasies: int = 64
    knows_constraints: ClassVar[bool] = True

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Propose as knowledge gradient does, by the mistaken model."""
        model, y = context.model, context.observed
        assert isinstance(model, OnlineGP)
        # Where the zero of the paper's units is in those of the model: its outcomes are standardized, ours alone; and
        # what is limited is limited at zero.
        zeros = [-y.mean() / y.std(correction=0), *(upper for _, upper in context.objective.limits)]
        mistaken = replace(context, model=_UncenteredModel(model, zeros))
        return KnowledgeGradient(self.num_fantasies).propose(mistaken, q, seed=seed)


@final
class _UncenteredModel(Model):
    """A model that fantasizes by its belief, and conditions the uncentered one."""

    def __init__(self, model: OnlineGP, zeros: list[Any]) -> None:
        super().__init__()
        gps = [uncentered(gp, zero) for gp, zero in zip(model.gps, zeros, strict=True) if isinstance(gp, SparseGP)]
        self.likelihoods = model.likelihoods
        self.centered, self.uncentered = model, OnlineGP(gps, model.likelihoods)

    @property
    def num_outputs(self) -> int:
        return self.centered.num_outputs

    @property
    def batch_shape(self) -> torch.Size:
        return self.centered.batch_shape

    def posterior(self, X: Tensor, *args: Any, **options: Any) -> Any:
        return self.centered.posterior(X, *args, **options)

    def fantasize(self, X: Tensor, sampler: MCSampler, *args: Any, **options: Any) -> OnlineGP:
        drawn = sampler(self.centered.posterior(X, observation_noise=True))
        return self.uncentered.condition_on_observations(X, drawn)


def uncentered(gp: SparseGP, zero: Any) -> SparseGP:
    r"""The sparse GP whose pseudo-targets lack the prior mean.

    An exact GP on targets $\hat y - c$ instead of $\hat y$, with the same noise, has the whitened mean
    $\bar m - (I - \bar S) L^{-1} c$.

    Args:
        gp: The GP.
        zero: The value that pseudo-targets are centered by instead of the prior mean.
    """
    process = gp.process
    c = process.prior.mean(process.inducing_points) - zero
    shift = apply(process.variance_reduction, solve_vector(process.factor, c))
    return SparseGP(process.with_belief(process.whitened_mean - shift, process.whitened_root))
