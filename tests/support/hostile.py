"""Problems that no user should have, one for each seed, and what must hold for all of them.

Scales from 1e-8 to 1e8, noise from none to 1e6, repeated and offset inputs, all kernels and likelihoods, both dtypes,
chains, absorbing, forgetting, saving and loading. Whatever comes: a finite answer that is right within what the
condition of the problem allows, or one of our errors; never NaN, never a negative variance, never another exception.
"""

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import gpytorch
import torch
from gpytorch import kernels
from tests.support.reference import ReferenceMoments, condition_precisely
from torch import Tensor

from streamgp import likelihoods, load
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.errors import StreamGPError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["KERNELS", "LIKELIHOODS", "CaseResult", "run_case"]

Draw = Callable[[torch.Generator, Tensor], Tensor]


@final
@dataclass(frozen=True)
class CaseResult:
    """Outcome of one problem.

    Attributes:
        seed: The problem's seed.
        description: The problem, for a reader.
        refusal: The sentence of our error, if there was one.
        failures: Events that must not happen, but did.
        num_compared: Number of predictions that were compared with sixty digits.
    """

    seed: int
    description: str
    refusal: str = ""
    failures: tuple[str, ...] = ()
    num_compared: int = 0


def run_case(seed: int) -> CaseResult:
    """Draw a problem and try it."""
    case = _Case(seed)
    try:
        case.run()
    except StreamGPError as error:
        case.check_sentence(error)
        return CaseResult(seed, case.description, str(error), tuple(case.failures), case.num_compared)
    except Exception as error:
        case.failures.append(f"{type(error).__name__}: {error}"[:300])
    return CaseResult(seed, case.description, "", tuple(case.failures), case.num_compared)


KERNELS: dict[str, Callable[[int], Any]] = {
    "RBFKernel": lambda d: kernels.RBFKernel(ard_num_dims=d),
    "RBFKernel shared": lambda d: kernels.RBFKernel(),
    "MaternKernel 1/2": lambda d: kernels.MaternKernel(0.5, ard_num_dims=d),
    "MaternKernel 3/2": lambda d: kernels.MaternKernel(1.5),
    "MaternKernel 5/2": lambda d: kernels.MaternKernel(2.5, ard_num_dims=d),
    "RQKernel": lambda d: kernels.RQKernel(ard_num_dims=d),
    "PeriodicKernel": lambda d: kernels.PeriodicKernel(),
    "CosineKernel": lambda d: kernels.CosineKernel(active_dims=(0,)),  # positive definite in one dimension only
    "LinearKernel": lambda d: kernels.LinearKernel(ard_num_dims=d),
    "PolynomialKernel": lambda d: kernels.PolynomialKernel(2),
    "ConstantKernel": lambda d: kernels.ConstantKernel(),
    "SpectralMixtureKernel": lambda d: kernels.SpectralMixtureKernel(2, ard_num_dims=d),
    "AdditiveKernel": lambda d: kernels.RBFKernel() + kernels.LinearKernel(),
    "ProductKernel": lambda d: kernels.MaternKernel(2.5) * kernels.PeriodicKernel(),
    "active dimensions": lambda d: (
        kernels.MaternKernel(1.5, active_dims=(0,)) + kernels.RBFKernel(active_dims=(d - 1,))
    ),
}


def _counts(rng: torch.Generator, f: Tensor) -> Tensor:
    return torch.floor(torch.rand(f.shape, generator=rng) * 10.0 ** (6 * torch.rand((), generator=rng))).to(f)


LIKELIHOODS: dict[str, tuple[Callable[[], AbstractLikelihood], Draw]] = {
    "Gaussian": (lambda: likelihoods.Gaussian(0.1), lambda rng, f: f),
    "Bernoulli": (likelihoods.Bernoulli, lambda rng, f: (f > f.mean()).to(f)),
    "Bernoulli probit": (lambda: likelihoods.Bernoulli(link="probit"), lambda rng, f: (f > f.mean()).to(f)),
    "Binomial": (lambda: likelihoods.Binomial(1e6), _counts),
    "Poisson": (likelihoods.Poisson, _counts),
    "NegativeBinomial": (lambda: likelihoods.NegativeBinomial(2.0), _counts),
    "StudentT": (lambda: likelihoods.StudentT(4.0, 0.5), lambda rng, f: f),
    "Preference": (likelihoods.Preference, lambda rng, f: (f > f.mean()).to(f)),
    "Volatility": (likelihoods.Volatility, lambda rng, f: f),
}

_ACTIONS = ("predict", "condition", "condition", "chain", "absorb", "stream", "forget", "likelihood", "likelihood")
_SMALLEST, _LARGEST = -8.0, 8.0


@final
@dataclass
class _Case:
    seed: int
    failures: list[str] = field(default_factory=list)
    description: str = ""
    num_compared: int = 0

    def run(self) -> None:
        self.rng = torch.Generator().manual_seed(self.seed)
        self.dtype = torch.float32 if self.uniform() < 0.5 else torch.float64
        self.d = self.integer(1, 3)
        name, action = self.choose(list(KERNELS)), self.choose(_ACTIONS)
        spread = 10.0 ** self.uniform(_SMALLEST, _LARGEST)
        offset = spread * 10.0 ** self.uniform(0, 8) if self.uniform() < 0.3 else 0.0
        # Most lengthscales are near the spread of the inputs; with others, points are alike or have nothing in common.
        lengthscale = spread * 10.0 ** (self.uniform(-1, 1) if self.uniform() < 0.7 else self.uniform(-8, 8))
        outputscale = 10.0 ** self.uniform(_SMALLEST, _LARGEST)
        noise = 0.0 if self.uniform() < 0.15 else 10.0 ** self.uniform(-12, 6)
        self.target_scale = math.sqrt(outputscale) * 10.0 ** (self.uniform(-2, 2) if self.uniform() < 0.8 else 8.0)
        m, n = self.integer(1, 6), self.integer(0, 5)
        self.description = (
            f"{action}, {name}, {self.dtype}, d={self.d}, m={m}, n={n}, spread={spread:.1e}, offset={offset:.1e}, "
            f"lengthscale={lengthscale:.1e}, outputscale={outputscale:.1e}, noise={noise:.1e}, "
            f"targets={self.target_scale:.1e}"
        )
        Z, X, W = (self.inputs(size, spread, offset) for size in (m, n, 3))
        if self.uniform() < 0.4:  # what is asked is what was told, or what is known
            W[0] = (X if n else Z)[0]
        if n > 1 and self.uniform() < 0.4:
            X[-1] = X[0]
        if n and self.uniform() < 0.2:
            X[0] = Z[0]
        # A common fill value; beside inputs with an offset it would take the digits that their offset leaves.
        if self.uniform() < 0.1 and not offset:
            W[-1] = self.choose((1e20, 1e30, -1e9))
        self.X, self.W = X, W
        self.y = self.normal(n) * self.target_scale
        self.noise = torch.full((n,), noise, dtype=self.dtype)
        gp = self.draw_gp(name, Z, lengthscale, outputscale)
        getattr(self, f"try_{action}")(gp)

    def try_predict(self, gp: SparseGP) -> None:
        self.check(gp)
        self.compare(gp, gp)
        self.check_storage(gp)

    def try_condition(self, gp: SparseGP) -> None:
        after = gp.condition(self.X, self.y, noise_variance=self.noise)
        self.check(after)
        self.compare(after, gp, X=self.X, y=self.y, noise=self.noise + self.share(gp) * after.jitter)

    def share(self, gp: SparseGP) -> Tensor:
        """Jitter of each observation, in units of that of an average one: it follows the prior variances."""
        scale = gp.process.prior.variance(self.X).detach()
        share = scale / scale.mean()
        return torch.where(share > torch.finfo(share.dtype).eps, share, 1.0)

    def try_chain(self, gp: SparseGP) -> None:
        after = gp.condition(self.X[:1], self.y[:1], noise_variance=self.noise[:1])
        for i in range(1, len(self.X)):
            part = slice(i, i + 1)
            after = after.condition(self.X[part], self.y[part], noise_variance=self.noise[part])
        self.check(after)
        # All observations of a chain share the jitter.
        self.compare(after, gp, X=self.X, y=self.y, noise=self.noise + self.share(gp) * after.jitter)

    def try_absorb(self, gp: SparseGP) -> None:
        after, info = gp.absorb(self.X, self.y, noise_variance=self.noise, inducing="keep")
        self.check(after)
        if not info.num_clipped:  # which is reported
            self.compare(after, gp, X=self.X, y=self.y, noise=self.noise, mode="absorb")

    def try_stream(self, gp: SparseGP) -> None:
        for step in range(4):
            if step % 2:
                gp = gp.forget(0.5)
            gp, _ = gp.absorb(self.X, self.y, noise_variance=self.noise)
            self.check(gp)
        self.check_storage(gp)

    def try_forget(self, gp: SparseGP) -> None:
        factor = 10.0 ** self.uniform(-6, 0)
        after = gp.forget(factor)
        self.check(after)
        nothing = {"X": self.X[:0], "y": self.y[:0], "noise": self.noise[:0]}
        self.compare(after, gp, mode="absorb", decay=factor, **nothing)

    def try_likelihood(self, gp: SparseGP) -> None:
        name = self.choose(list(LIKELIHOODS))
        self.description += f", {name}"
        make, draw = LIKELIHOODS[name]
        y = draw(self.rng, self.y) if len(self.y) else self.y
        X = self.X.unsqueeze(-2).expand(-1, 2, -1).clone() if name == "Preference" else self.X
        if name == "Preference":
            X[:, 1] = self.inputs(len(X), float(self.X.abs().max()) if len(X) else 1.0, 0.0)
        if self.uniform() < 0.5:
            self.check(gp.condition(X, y, likelihood=make()))
        else:
            self.check(gp.absorb(X, y, likelihood=make())[0])

    def draw_gp(self, name: str, Z: Tensor, lengthscale: float, outputscale: float) -> SparseGP:
        base = KERNELS[name](self.d)
        for module in base.modules():
            for parameter in ("lengthscale", "period_length"):
                if getattr(module, f"raw_{parameter}", None) is not None and getattr(module, f"has_{parameter}", True):
                    # The lengthscale of a periodic kernel has no unit.
                    is_free = parameter == "lengthscale" and isinstance(module, kernels.PeriodicKernel)
                    module.initialize(**{parameter: 1.0 if is_free else lengthscale})
        if name == "SpectralMixtureKernel":
            base.initialize(mixture_scales=0.1 / lengthscale, mixture_means=0.1 / lengthscale)
        kernel = kernels.ScaleKernel(base).to(self.dtype)
        kernel.outputscale = outputscale
        mean = gpytorch.means.ZeroMean()
        if self.uniform() < 0.5:
            mean = gpytorch.means.ConstantMean()
            mean.initialize(constant=self.target_scale * float(self.normal(1)))
        gp = SparseGP.from_prior(kernel, Z, mean=mean)
        if self.uniform() < 0.5:
            return gp
        m = len(Z)
        root = torch.randn(m, m, generator=self.rng, dtype=torch.float64)
        width = self.uniform(0.3, 1.3)
        root = root * (width / torch.linalg.matrix_norm(root @ root.T, ord=2)).sqrt()
        return SparseGP(gp.process.with_belief(self.normal(m), root.to(self.dtype)))

    def check(self, gp: SparseGP | ConditionedGP) -> None:
        """A prediction is finite, and has no negative variance."""
        lazy, joint = gp.predict(self.W), gp.predict(self.W, covariance=True)
        for kind, prediction in (("lazy", lazy), ("joint", joint)):
            self.expect(torch.isfinite(prediction.mean).all(), f"{kind} mean is {prediction.mean.tolist()}")
            variance = prediction.variance
            self.expect(torch.isfinite(variance).all(), f"{kind} variance is {variance.tolist()}")
            self.expect((variance >= 0).all(), f"{kind} variance is {variance.tolist()}")
        covariance = joint.covariance
        self.expect(torch.isfinite(covariance).all(), f"covariance is {covariance.tolist()}")
        self.expect(
            (covariance.diagonal() >= 0).all(), f"diagonal of the covariance is {covariance.diagonal().tolist()}"
        )

    def compare(self, after: SparseGP | ConditionedGP, gp: SparseGP, **told: Any) -> None:
        """A prediction agrees with sixty digits within its condition."""
        X, y, noise = (told.pop(key, None) for key in ("X", "y", "noise"))
        if X is None:
            X, y, noise = self.X[:0], self.y[:0], self.noise[:0]
        try:
            expected = condition_precisely(gp, X, y, noise, self.W, **told)
        except ZeroDivisionError:  # no noise to divide by
            return
        self.num_compared += 1
        prediction, limits = after.predict(self.W), _usable(expected.limits(self.dtype))
        for name in ("mean", "variance", "covariance"):
            found, right, limit = (getattr(each, name).double() for each in (prediction, expected, limits))
            error = (found - right).abs()
            self.expect(
                (error <= limit).all(),
                f"{name} {found.tolist()} is not {right.tolist()}: beyond the bound by {(error / limit).max():.1e}",
            )

    def check_storage(self, gp: SparseGP) -> None:
        """Check that a saved belief predicts the same bits."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "gp"
            gp.save(path)
            twin = load(path)
        same = torch.equal(twin.predict(self.W).mean, gp.predict(self.W).mean)
        same &= torch.equal(twin.predict(self.W).variance, gp.predict(self.W).variance)
        self.expect(same, "what was saved and loaded predicts otherwise")

    def check_sentence(self, error: StreamGPError) -> None:
        """An error is a sentence."""
        text = str(error)
        self.expect(text.endswith(".") and len(text) > 30, f"{type(error).__name__} is no sentence: {text!r}")

    def expect(self, holds: Tensor | bool, otherwise: str) -> None:
        if not bool(holds):
            self.failures.append(otherwise[:600])

    def inputs(self, size: int, spread: float, offset: float) -> Tensor:
        X = offset + spread * torch.rand(size, self.d, generator=self.rng, dtype=torch.float64)
        return X.to(self.dtype)

    def normal(self, size: int) -> Tensor:
        return torch.randn(size, generator=self.rng, dtype=torch.float64).to(self.dtype)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        return low + (high - low) * float(torch.rand((), generator=self.rng, dtype=torch.float64))

    def integer(self, low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=self.rng))

    def choose(self, options: Any) -> Any:
        return options[self.integer(0, len(options) - 1)]


def _usable(limits: ReferenceMoments) -> ReferenceMoments:
    """A limit that is not a number limits nothing."""
    return limits._replace(
        mean=limits.mean.nan_to_num(nan=math.inf, posinf=math.inf),
        covariance=limits.covariance.nan_to_num(nan=math.inf, posinf=math.inf),
    )
