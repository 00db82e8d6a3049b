"""Observations as users pass them: Gaussian with known noise, or of any likelihood."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_batch, check_finite, check_float, check_inputs, check_matches, check_targets
from streamgp.conditioning.noise import Noise
from streamgp.errors import OptionError, ShapeError
from streamgp.gp import Prior
from streamgp.likelihoods import AbstractLikelihood, read_likelihood
from streamgp.linalg import apply
from streamgp.shapes import broadcast_shapes
from streamgp.sites import AbstractBelief, DenseBelief, SiteInfo, SiteRule, find_sites

__all__ = ["Observation", "check_observed", "prior_belief"]


@final
@dataclass(frozen=True, eq=False)
class Observation:
    r"""Checked observations of values $H f(X)$.

    Attributes:
        inputs: $X$, pairs of inputs already laid out in rows.
        targets: What was observed.
        projection: $H$; None for the identity.
        noise: The noise of Gaussian observations, also of a Gaussian likelihood; None where there is another one.
        likelihood: The likelihood of others.
        rule: How those become Gaussian sites.
    """

    inputs: Float[Tensor, "*b n d"]
    targets: Float[Tensor, "*s k"]
    projection: Float[Tensor, "k n"] | None
    noise: Noise | None
    likelihood: AbstractLikelihood | None
    rule: SiteRule

    @classmethod
    def read(
        cls,
        X: object,
        y: object,
        *,
        like: Tensor,
        batch_shape: torch.Size,
        noise_variance: object,
        likelihood: object,
        sites: str | SiteRule,
    ) -> "Observation":
        """Check what a user passed against the inputs and the leading axes of a model."""
        rule = sites if isinstance(sites, SiteRule) else SiteRule(sites)
        if likelihood is None:
            X = check_inputs(X, num_dims=like.shape[-1], like=like, batch_shape=batch_shape)
            y = check_targets(y, X)
            check_batch(y.shape[:-1], batch_shape, "y", num_own_axes=1)
            return cls(X, _broadcast(y, X), None, Noise.read(noise_variance, X), None, rule)
        if noise_variance is not None:
            raise OptionError(
                "Both noise_variance and likelihood were given, but a likelihood brings its own noise. Pass one."
            )
        likelihood = read_likelihood(likelihood)
        rows, y = check_observed(X, y, likelihood, like=like, batch_shape=batch_shape)
        X, projection = rows, None
        if likelihood.num_inputs == 2:
            X, projection, rows = rows.flatten(-3, -2), _differences(rows), rows[..., 0, :]
        noise = likelihood.gaussian_noise_variance
        if noise is not None:  # exact, whatever the rule
            return cls(X, _broadcast(y, rows), projection, Noise.read(noise.to(X), X), None, rule)
        return cls(X, _broadcast(y, rows), projection, None, likelihood, rule)

    def detach_and_expand(self, batch_shape: torch.Size) -> "Observation":
        """The same for a GP with leading axes that holds no gradients; refuses noise of zero."""
        noise = None if self.noise is None else self.noise.check_positive()
        y, X = self.targets.detach(), self.inputs.detach()
        batch = broadcast_shapes(batch_shape, y.shape[:-1])
        if batch:
            X, y = X.expand(*batch, *X.shape[-2:]), y.expand(*batch, y.shape[-1])
        return Observation(X, y, self.projection, noise, self.likelihood, self.rule)

    def to_gaussian(
        self, belief: Callable[[], AbstractBelief], prior_belief: Callable[[], AbstractBelief]
    ) -> tuple[Float[Tensor, "*s k"], Noise, SiteInfo | None]:
        """Express the observations as Gaussian ones, given what was believed about their latent values."""
        if self.noise is not None:
            return self.targets, self.noise, None
        assert self.likelihood is not None
        before = prior_belief() if self.rule.rule == "paper" else belief()
        sites, info = find_sites(before, self.likelihood, self.targets, self.rule)
        return sites.targets, Noise(sites.variance), info


def check_observed(
    X: object, y: object, likelihood: AbstractLikelihood, *, like: Tensor, batch_shape: torch.Size
) -> tuple[Tensor, Tensor]:
    """Check inputs `(*b, n, d)`, or pairs of them `(*b, n, 2, d)`, and targets against a likelihood and a model."""
    num_latents = likelihood.num_latents
    if num_latents > 1 and batch_shape[-1:] != (num_latents,):
        raise OptionError(
            f"A {type(likelihood).__name__} likelihood looks at {num_latents} latent functions, so that the GP must be "
            f"a batch of as many, but its leading axes are {tuple(batch_shape)}. Give the kernel or the mean "
            f"batch_shape=torch.Size([{num_latents}])."
        )
    if likelihood.num_inputs == 1:
        X = rows = check_inputs(X, num_dims=like.shape[-1], like=like, batch_shape=batch_shape)
    else:
        X = _check_pairs(X, like)
        check_batch(X.shape[:-3], batch_shape, "X", num_own_axes=3)
        rows = X[..., 0, :]
    y = check_targets(_support(likelihood, y, like), rows)
    check_batch(y.shape[:-1], batch_shape, "y", num_own_axes=1)
    likelihood.check_rows(broadcast_shapes(y.shape, rows.shape[:-1], (*batch_shape, y.shape[-1])))
    return X, y


def prior_belief(prior: Prior, X: Float[Tensor, "*b n d"], projection: Float[Tensor, "k n"] | None) -> DenseBelief:
    """What the prior says of the observed values, where the paper linearizes."""
    mean, covariance = prior.mean(X), prior.covariance(X, X)
    if projection is not None:
        mean, covariance = apply(projection, mean), projection @ covariance @ projection.mT
    return DenseBelief(mean, covariance)


def _support(likelihood: AbstractLikelihood, y: object, like: Tensor) -> Tensor:
    """Check the support; whole numbers may come as integers."""
    checked = likelihood.check_targets(y)
    if isinstance(y, Tensor) and y.is_floating_point():
        return check_matches(check_float(y, "y"), like, "y")
    return checked.to(dtype=like.dtype, device=like.device)


def _check_pairs(X: object, like: Tensor) -> Tensor:
    X = check_float(X, "X", like=like)
    d = like.shape[-1]
    if X.dim() < 3 or X.shape[-2:] != (2, d):
        raise ShapeError(
            f"X must have shape (..., n, 2, {d}), one pair of inputs for each comparison, but has shape "
            f"{tuple(X.shape)}. Stack the first and the second inputs with torch.stack([first, second], dim=-2)."
        )
    return check_finite(check_matches(X, like, "X"), "X")


def _differences(pairs: Tensor) -> Tensor:
    """The matrix that takes values at all rows of n pairs to their n differences."""
    n = pairs.shape[-3]
    signs = torch.tensor([1.0, -1.0], dtype=pairs.dtype, device=pairs.device)
    return torch.kron(torch.eye(n, dtype=pairs.dtype, device=pairs.device), signs.unsqueeze(0))


def _broadcast(y: Tensor, X: Tensor) -> Tensor:
    batch = broadcast_shapes(y.shape[:-1], X.shape[:-2])
    return y.expand(*batch, y.shape[-1]) if batch else y
