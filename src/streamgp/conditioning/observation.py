"""Observations as users pass them: of values or evidence, Gaussian with known noise, or of any likelihood."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import (
    check_batch,
    check_finite,
    check_float,
    check_inputs,
    check_matches,
    check_noise_variance,
    check_targets,
)
from streamgp.errors import OptionError, ShapeError, ValueRangeError
from streamgp.evidence import Evidence, difference
from streamgp.gp import AbstractProcess, Prior
from streamgp.likelihoods import AbstractLikelihood, read_likelihood
from streamgp.linalg import cholesky, solve_lower
from streamgp.shapes import broadcast_shapes, is_broadcastable
from streamgp.sites import AbstractBelief, DenseBelief, SiteInfo, SiteRule, find_sites

__all__ = ["LEAST_RELATIVE_NOISE", "Noise", "Observation", "check_observed", "check_rows", "prior_belief"]

# Relative to the prior variance, noise below this counts as this where its reciprocal weighs observations: products of
# two such weights stay finite.
LEAST_RELATIVE_NOISE = {torch.float64: 1e-60, torch.float32: 1e-12}


@final
@dataclass(frozen=True, eq=False)
class Noise:
    r"""The covariance $\Sigma$ of the observations.

    Attributes:
        values: A number, variances `(*b, n)`, or a matrix `(*b, n, n)`.
        is_matrix: Whether it is a matrix.
    """

    values: Float[Tensor, "..."]
    is_matrix: bool = False

    @classmethod
    def read(cls, noise_variance: object, X: Tensor) -> "Noise":
        """Check what a user passed."""
        if noise_variance is None:
            raise OptionError(
                "Neither noise_variance nor likelihood was given, so how far the observations can be trusted is not "
                "known. Pass noise_variance=..., the variance of the Gaussian noise, or a likelihood."
            )
        return cls(*check_noise_variance(noise_variance, X))

    def add_to(self, covariance: Float[Tensor, "*b n n"]) -> Float[Tensor, "*c n n"]:
        r"""Add $\Sigma$ to a covariance."""
        if self.is_matrix:
            return covariance + self.values
        return covariance + torch.diag_embed(self._per_observation(covariance.shape[-1]))

    def whiten(self, rows: Float[Tensor, "*b n k"]) -> Float[Tensor, "*c n k"]:
        r"""Apply $\Sigma^{-1/2}$ to rows that belong to the observations; needs positive noise."""
        if self.is_matrix:
            factor, _ = cholesky(self.values, name="noise_variance")
            return solve_lower(factor, rows)
        return rows / self._per_observation(rows.shape[-2]).sqrt().unsqueeze(-1)

    def variances(self, num_observations: int) -> Float[Tensor, "*b n"]:
        """The diagonal."""
        return self.values.diagonal(dim1=-2, dim2=-1) if self.is_matrix else self._per_observation(num_observations)

    def precisions(self, prior_variance: Float[Tensor, "*b n"]) -> Float[Tensor, "*c n"]:
        """Reciprocal variances, as weights of observations of values with known prior variance."""
        least = LEAST_RELATIVE_NOISE[prior_variance.dtype] * prior_variance
        return 1.0 / torch.maximum(self.variances(prior_variance.shape[-1]), least)

    def check_positive(self) -> "Noise":
        """Refuse noise-free observations, whose information is infinite."""
        variances = self.variances(1).detach() if self.values.dim() else self.values.detach()
        if variances.numel() and float(variances.min() if variances.dim() else variances) <= 0:
            raise ValueRangeError(
                "noise_variance must be positive to absorb observations, but is zero. Pass a small variance, "
                "or use condition, which also takes observations without noise."
            )
        return self

    def _per_observation(self, n: int) -> Tensor:
        return self.values.expand(n) if self.values.dim() == 0 else self.values


@final
@dataclass(frozen=True, eq=False)
class Observation:
    r"""Checked observations of values $f(X)$, or of rows of evidence.

    Attributes:
        inputs: $X$, or the rows; pairs of inputs are rows of differences.
        targets: Observed values.
        noise: The noise of Gaussian observations, also of a Gaussian likelihood; None where there is another one.
        likelihood: The likelihood of others.
        rule: How those become Gaussian sites.
    """

    inputs: Float[Tensor, "*b k d"] | Evidence
    targets: Float[Tensor, "*s k"]
    noise: Noise | None
    likelihood: AbstractLikelihood | None
    rule: SiteRule

    @classmethod
    def read(
        cls,
        X: object,
        y: object,
        process: AbstractProcess,
        *,
        noise_variance: object,
        likelihood: object,
        sites: str | SiteRule,
    ) -> "Observation":
        """Check what a user passed against the inputs and the leading axes of a process."""
        like, batch_shape = process.reference, process.batch_shape
        rule = sites if isinstance(sites, SiteRule) else SiteRule(sites)
        if likelihood is None:
            if isinstance(X, Evidence):
                X, y, noise_variance, _ = check_rows(X, y, noise_variance, like=like, batch_shape=batch_shape)
            else:
                X = check_inputs(X, num_dims=like.shape[-1], like=like, batch_shape=batch_shape)
                y = check_targets(y, X)
            check_batch(y.shape[:-1], batch_shape, "y", num_own_axes=1)
            return cls(X, _broadcast(y, X), Noise.read(noise_variance, _stand_in(X)), None, rule)
        if noise_variance is not None:
            raise OptionError(
                "Both noise_variance and likelihood were given, but a likelihood brings its own noise. Pass one."
            )
        likelihood = read_likelihood(likelihood)
        rows: Tensor | Evidence
        if isinstance(X, Evidence):
            rows, y, _, kept = check_rows(X, y, None, like=like, batch_shape=batch_shape)
            likelihood = likelihood if kept is None else likelihood.at_rows(kept)
            _check_latents(likelihood, batch_shape)
            y = check_targets(_support(likelihood, y, like), rows.stand_in)
            likelihood.check_rows(broadcast_shapes(y.shape, rows.shape[:-1], (*batch_shape, y.shape[-1])))
        else:
            rows, y = check_observed(X, y, likelihood, like=like, batch_shape=batch_shape)
            if likelihood.num_inputs == 2:
                rows = difference(*rows.unbind(-2))
        noise = likelihood.gaussian_noise_variance
        if noise is not None:  # exact, whatever the rule
            return cls(rows, _broadcast(y, rows), Noise.read(noise.to(like), _stand_in(rows)), None, rule)
        return cls(rows, _broadcast(y, rows), None, likelihood, rule)

    def detach_and_expand(self, batch_shape: torch.Size) -> "Observation":
        """Fit the observations to a GP with leading axes that holds no gradients; refuse noise of zero."""
        noise = None if self.noise is None else self.noise.check_positive()
        y, X = self.targets.detach(), self.inputs.detach()
        batch = broadcast_shapes(batch_shape, y.shape[:-1])
        if batch:
            X = X.expand(batch) if isinstance(X, Evidence) else X.expand(*batch, *X.shape[-2:])
            y = y.expand(*batch, y.shape[-1])
        return Observation(X, y, noise, self.likelihood, self.rule)

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
    _check_latents(likelihood, batch_shape)
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


def check_rows(
    evidence: Evidence, y: Any, noise_variance: Any, *, like: Tensor, batch_shape: Sequence[int]
) -> tuple[Evidence, Tensor, Any, Tensor | None]:
    """Check evidence with its targets and noise, and leave out rows that were not observed.

    Args:
        evidence: The evidence.
        y: Targets `(*s, k)` or `(*s, n, d)`, or a sequence with those of each part.
        noise_variance: A number, variances in the shape of the targets, a covariance matrix `(k, k)`, or a sequence
            with numbers or variances of each part; None passes.
        like: Inputs of the model.
        batch_shape: Leading axes of the model.

    Returns:
        Rows that were observed, their targets `(*s, k)`, their noise, and which rows they are; None if all.
    """
    rows = evidence.matched(like, batch_shape)
    y = _flat(evidence, y, "y", like)
    _check_lead(y, rows)
    noise = noise_variance
    if noise is not None and not _is_number(noise) and not _is_matrix(evidence, noise):
        noise = _flat(evidence, noise, "noise_variance", like)
    is_missing = y.detach().isnan()
    if not bool(is_missing.any()):
        return rows, check_finite(y, "y"), noise, None
    anywhere = is_missing.reshape(-1, y.shape[-1]).any(0)
    if bool((anywhere & ~_may_be_missing(evidence)).any()):
        raise ValueRangeError(
            f"y must be finite, but is NaN in row {int((anywhere & ~_may_be_missing(evidence)).nonzero()[0])} of the "
            "evidence. Only components of gradients may be left out so; leave other rows out of the evidence."
        )
    if bool((anywhere != is_missing).any()):
        raise ValueRangeError(
            "y has components of gradients that are NaN in some of its leading axes only. All fantasies must leave out "
            "the same ones."
        )
    kept = (~anywhere).nonzero().squeeze(-1)
    if isinstance(noise, Tensor) and noise.dim() and noise.shape[-1] == evidence.num_rows:
        is_matrix = noise.dim() >= 2 and noise.shape[-2] == evidence.num_rows and _is_matrix(evidence, noise)
        noise = noise[..., kept, :][..., kept] if is_matrix else noise[..., kept]
    return rows.select(kept), check_finite(y[..., kept], "y"), noise, kept


def _may_be_missing(evidence: Evidence) -> Tensor:
    """Rows of slopes alone, whose components may be unknown."""
    weights = evidence.value_weights
    if weights is None:
        return torch.zeros(evidence.num_rows, dtype=torch.bool)
    is_value = (weights != 0).reshape(-1, weights.shape[-1]).any(0)
    if evidence.row_of is None:
        return ~is_value
    return torch.zeros(evidence.num_rows).index_add(0, evidence.row_of, is_value.float()) == 0


def _check_lead(y: Tensor, rows: Evidence) -> None:
    if not is_broadcastable(y.shape[:-1], rows.shape[:-2]):
        raise ShapeError(
            f"The leading axes {tuple(y.shape[:-1])} of y do not broadcast with those of the evidence, "
            f"{tuple(rows.shape[:-2])}. Give one target for each row; only leading axes may be added."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, Tensor) and value.numel() == 1 and value.dim() <= 1)


def _is_matrix(evidence: Evidence, value: Any) -> bool:
    k = evidence.num_rows
    shape = getattr(value, "shape", ())
    return len(shape) >= 2 and tuple(shape[-2:]) == (k, k) and tuple(evidence.target_shape) != (k, k)


def _flat(evidence: Evidence, value: Any, name: str, like: Tensor) -> Tensor:
    """Numbers of all rows, one after the other."""
    parts = evidence.part_shapes
    if isinstance(value, tuple | list) and len(value) == len(parts) > 1:
        each = [
            _part(one, shape, f"{name}[{i}]", like) for i, (one, shape) in enumerate(zip(value, parts, strict=True))
        ]
        lead = broadcast_shapes(*(one.shape[:-1] for one in each))
        return torch.cat([one.expand(*lead, one.shape[-1]) for one in each], dim=-1)
    if len(parts) == 1:
        return _part(value, parts[0], name, like)
    return _part(value, (evidence.num_rows,), name, like)


def _part(value: Any, shape: tuple[int, ...], name: str, like: Tensor) -> Tensor:
    k = math.prod(shape)
    if _is_number(value) and name.startswith("noise_variance["):
        return like.new_full((k,), float(value))
    read = check_float(value, name, like=like).to(like)
    if read.dim() >= len(shape) and tuple(read.shape[read.dim() - len(shape) :]) == shape:
        return read.flatten(-len(shape), -1) if len(shape) > 1 else read
    if read.dim() >= 1 and read.shape[-1] == k:
        return read
    if read.dim() == 0 and k == 1:
        return read.reshape(1)
    raise ShapeError(
        f"{name} must have shape {shape}, one number for each row of the evidence, but has shape {tuple(read.shape)}. "
        "Only leading axes may be added before these; of combined evidence, pass one flat vector or a tuple with one "
        "entry for each part."
    )


def prior_belief(prior: Prior, X: Float[Tensor, "*b k d"] | Evidence) -> DenseBelief:
    """Return the prior of the observed values, where the paper linearizes."""
    return DenseBelief(prior.mean(X), prior.covariance(X, X))


def _check_latents(likelihood: AbstractLikelihood, batch_shape: torch.Size) -> None:
    num_latents = likelihood.num_latents
    if num_latents > 1 and batch_shape[-1:] != (num_latents,):
        raise OptionError(
            f"A {type(likelihood).__name__} likelihood looks at {num_latents} latent functions, so that the GP must be "
            f"a batch of as many, but its leading axes are {tuple(batch_shape)}. Give the kernel or the mean "
            f"batch_shape=torch.Size([{num_latents}])."
        )


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


def _stand_in(X: Tensor | Evidence) -> Tensor:
    return X.stand_in if isinstance(X, Evidence) else X


def _broadcast(y: Tensor, X: Tensor | Evidence) -> Tensor:
    batch = broadcast_shapes(y.shape[:-1], X.shape[:-2])
    return y.expand(*batch, y.shape[-1]) if batch else y
