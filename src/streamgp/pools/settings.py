"""The options of a pool learner, checked."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.hotspot_entropy import HotspotRule
from streamgp.acquisition.indices import check_constants, read_indices, read_weights
from streamgp.acquisition.response import latent_threshold
from streamgp.checks import check_choice, check_count, check_finite, check_positive, to_double
from streamgp.errors import DTypeError, OptionError, ShapeError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood, Bernoulli, Gaussian, NegativeBinomial, Poisson, StudentT
from streamgp.pools.design import seeded
from streamgp.training.priors import PRIORS

__all__ = ["ACQUISITIONS", "LIKELIHOODS", "Settings", "Training"]

ACQUISITIONS = ("integrated_variance", "response_variance", "hotspot_entropy", "exceedance", "variance", "random")
_THRESHOLDED = ("hotspot_entropy", "exceedance")
REFITS = ("auto", "always", "never")
LIKELIHOODS: dict[str, type[AbstractLikelihood]] = {
    "gaussian": Gaussian,
    "student_t": StudentT,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "bernoulli": Bernoulli,
}
# Gains over larger pools are summed over a subset.
_MOST_TARGETS, _NUM_TARGETS = 5000, 2000
_LEAST_INITIAL, _MOST_INITIAL = 5, 30
_TARGETS = 1


@final
@dataclass(frozen=True)
class Training:
    """How hyperparameters are learned; the options of `streamgp.fit`, which describes them.

    Attributes:
        objective: `"elbo"` or `"pll"`.
        beta: Weight of the divergence of the belief from the prior.
        priors: Set of priors, or None.
        num_starts: Number of starts.
        max_iterations: Most iterations of the last part; 200 by default, 10 from an earlier fit.
    """

    objective: str = "elbo"
    beta: float = 1.0
    priors: str | None = "dim_scaled"
    num_starts: int = 1
    max_iterations: int | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice(self.objective, ("elbo", "pll"), "objective")
        check_positive(self.beta, "beta")
        check_count(self.num_starts, "num_starts")
        if self.priors is not None:
            check_choice(self.priors, PRIORS, "priors")
        if self.max_iterations is not None:
            check_count(self.max_iterations, "max_iterations")


@final
@dataclass(frozen=True, eq=False)
class Settings:
    """What a pool learner was made with; described there.

    Attributes:
        inputs: Of all members, in the user's units.
        likelihood: Its constants are numbers, or have one value for each member.
        name: The name by which the likelihood was given; None for an object.
        given_targets: None for those not told yet.
    """

    inputs: Float[Tensor, "n d"]
    likelihood: AbstractLikelihood
    name: str | None
    acquisition: str
    threshold: float | None
    is_clipped: bool
    weights: Float[Tensor, " n"]
    given_targets: Int[Tensor, " t"] | None
    kernel: Kernel | None
    num_initial: int
    num_inducing: int
    refit: str | int
    training: Training
    standardize: bool
    seed: int

    @classmethod
    def read(
        cls,
        pool_X: Any,
        *,
        likelihood: Any,
        acquisition: Any,
        threshold: Any,
        is_clipped: Any,
        weights: Any,
        targets: Any,
        kernel: Any,
        num_initial: Any,
        num_inducing: Any,
        refit: Any,
        training: Any,
        standardize: Any,
        seed: Any,
    ) -> "Settings":
        """Check all options."""
        X = _read_inputs(pool_X)
        n, d = X.shape
        name = likelihood if isinstance(likelihood, str) else None
        checked = check_constants(likelihood if name is None else _by_name(name), n)
        check_choice(acquisition, ACQUISITIONS, "acquisition")
        _check_threshold(threshold, acquisition, checked)
        _check_types(kernel=kernel, training=training, is_clipped=is_clipped, standardize=standardize)
        default = min(max(2 * (d + 1), _LEAST_INITIAL), _MOST_INITIAL, n)
        return cls(
            inputs=X,
            likelihood=checked,
            name=name,
            acquisition=acquisition,
            threshold=None if threshold is None else float(threshold),
            is_clipped=is_clipped,
            weights=X.new_ones(n) if weights is None else read_weights(weights, n),
            given_targets=None if targets is None else _read_targets(targets, n),
            kernel=kernel,
            num_initial=default if num_initial is None else check_count(num_initial, "num_initial"),
            num_inducing=check_count(num_inducing, "num_inducing"),
            refit=_read_refit(refit),
            training=Training() if training is None else training,
            standardize=standardize,
            seed=check_count(seed, "seed", minimum=0),
        )

    @cached_property
    def shift_and_scale(self) -> tuple[Float[Tensor, " d"], Float[Tensor, " d"]]:
        """What takes inputs to the units of the model: zero mean and unit variance over the pool, or nothing."""
        X = self.inputs
        if not self.standardize:
            return torch.zeros_like(X[0]), torch.ones_like(X[0])
        spread = X.std(0, correction=0)
        return X.mean(0), torch.where(spread > 1e-12 * (1.0 + X.abs().amax(0)), spread, 1.0)

    @cached_property
    def scaled(self) -> Float[Tensor, "n d"]:
        """Inputs in the units of the model."""
        shift, scale = self.shift_and_scale
        return (self.inputs - shift) / scale

    @cached_property
    def default_targets(self) -> Int[Tensor, " t"]:
        """All members, or a random part of many, told ones included."""
        n = len(self.inputs)
        if n <= _MOST_TARGETS:
            return torch.arange(n)
        return torch.randperm(n, generator=seeded(self.seed, _TARGETS))[:_NUM_TARGETS].sort().values

    @property
    def hotspot_rule(self) -> HotspotRule:
        """The options of hotspot entropy."""
        assert self.threshold is not None
        return HotspotRule(self.threshold, self.is_clipped)


def _read_inputs(pool_X: Any) -> Float[Tensor, "n d"]:
    X = to_double(pool_X, "pool_X")
    if X.dim() != 2 or 0 in X.shape:
        raise ShapeError(
            f"pool_X must have shape (n, d), one row for each member of the pool and at least one of both, but has "
            f"shape {tuple(X.shape)}. A single column is pool_X.reshape(-1, 1)."
        )
    return check_finite(X, "pool_X")


def _by_name(name: str) -> AbstractLikelihood:
    if name == "binomial":
        raise OptionError(
            "'binomial' does not say out of how many trials. Pass streamgp.likelihoods.Binomial(total_count), with one "
            "total for all members or one for each."
        )
    if name not in LIKELIHOODS:
        raise OptionError(
            f"likelihood must be one of {', '.join(map(repr, LIKELIHOODS))}, or an object of streamgp.likelihoods, but "
            f"is {name!r}."
        )
    return LIKELIHOODS[name]()


def _check_threshold(threshold: Any, acquisition: str, likelihood: AbstractLikelihood) -> None:
    if threshold is None:
        if acquisition in _THRESHOLDED:
            raise OptionError(
                f"The acquisition {acquisition!r} needs a threshold, on the scale of the response: a prevalence, a "
                "rate or a value. Pass threshold=0.1, for example."
            )
        return
    latent_threshold(likelihood, threshold)
    if acquisition == "hotspot_entropy":
        HotspotRule(float(threshold)).check_likelihood(likelihood)


def _read_targets(targets: Any, n: int) -> Int[Tensor, " t"]:
    members = read_indices(targets, n, "targets")
    if not len(members):
        raise ValueRangeError("targets must name at least one member of the pool, but is empty. Pass None for all.")
    return members


def _read_refit(refit: Any) -> str | int:
    if isinstance(refit, str):
        return check_choice(refit, REFITS, "refit")
    if isinstance(refit, int) and not isinstance(refit, bool):
        return check_count(refit, "refit")
    raise OptionError(f"refit must be one of {', '.join(map(repr, REFITS))} or a whole number, but is {refit!r}.")


def _check_types(*, kernel: Any, training: Any, is_clipped: Any, standardize: Any) -> None:
    for name, value in (("is_clipped", is_clipped), ("standardize", standardize)):
        if not isinstance(value, bool):
            raise DTypeError(f"{name} must be True or False, but is {value!r}.")
    if kernel is not None and not isinstance(kernel, Kernel):
        raise DTypeError(f"kernel must be a kernel of GPyTorch, but is a {type(kernel).__name__}.")
    if training is not None and not isinstance(training, Training):
        raise DTypeError(
            f"training must be a streamgp.pools.Training, but is a {type(training).__name__}. "
            "Write training=Training(beta=0.1)."
        )
