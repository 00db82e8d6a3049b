"""Real numbers with heavy-tailed noise."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.links import AbstractIdentityLink
from streamgp.likelihoods.marginal import DROP
from streamgp.likelihoods.parameters import Probabilities, finite_exp, to_parameter
from streamgp.likelihoods.quadrature import gauss_hermite, nodes_first, standard_deviation
from streamgp.likelihoods.quantiles import continuous_quantiles
from streamgp.shapes import broadcast_shapes

__all__ = ["StudentT"]

# Below two degrees of freedom the variance is infinite. Training may come this near.
_SMALLEST_EXCESS = 1e-4

# Nodes of the expectations. On the stretched grid they are 0.1 apart while the standard deviation of f is
# below 100 times the width of the density, and Gaussians that it sees are at least 0.1 wide.
_NUM_NODES = 128

# The integral over the precision spans about 50 in its logarithm at worst, and has its singularities at
# a distance of pi / 2 from the real line: the trapezoidal rule on 128 nodes is then exact to 1e-10.
_NUM_MIXTURE_NODES = 128


@final
@dataclass(frozen=True, eq=False, init=False)
class StudentT(AbstractIdentityLink):
    r"""Targets $y = f + s \, \varepsilon$ with Student-t noise $\varepsilon$ of $\nu$ degrees of freedom.

    The noise is Gaussian with variance $s^2 / \lambda$ and a random precision
    $\lambda \sim \mathrm{Gamma}(\nu / 2, \nu / 2)$, so that densities and quantiles of $y$ are
    one-dimensional integrals over $\lambda$, whatever the variance of $f$.

    The log density is not concave: an outlier has positive second derivatives.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    y = torch.sin(6 * X[:, 0])
    y[::20] += 10.0  # outliers
    result = sg.fit(X, y, likelihood=sg.likelihoods.StudentT(), num_inducing=10)
    result.predict(X).mean  # hardly moved by them
    ```

    Attributes:
        degrees_of_freedom: The number $\nu$, above 2 so that the variance exists.
        scale: The scale $s$.
        is_learned: Whether training may change both.
    """

    name: ClassVar[str] = "student_t"
    is_robust: ClassVar[bool] = True

    degrees_of_freedom: Float[Tensor, "..."]
    scale: Float[Tensor, "..."]
    is_learned: bool

    def __init__(
        self, degrees_of_freedom: Tensor | float = 4.0, scale: Tensor | float = 0.3, *, is_learned: bool = True
    ) -> None:
        """Check and keep the parameters."""
        self._freeze(
            degrees_of_freedom=to_parameter(degrees_of_freedom, "degrees_of_freedom", above=2.0),
            scale=to_parameter(scale, "scale", above=0.0),
            is_learned=is_learned,
        )

    @classmethod
    def starting(cls) -> "StudentT":
        """Make one for targets of unit variance, most of which is signal."""
        return cls(4.0, 0.2)

    def rescaled(self, scale: Tensor | float) -> "StudentT":
        """Return the likelihood of targets and latent values that are both divided by `scale`."""
        return replace(self, scale=self.scale / torch.as_tensor(scale).abs().to(self.scale))

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $c - \log s - \frac{\nu + 1}{2} \log(1 + (y - f)^2 / (\nu s^2))$."""
        nu, s = self.degrees_of_freedom.to(f), self.scale.to(f)
        constant = torch.lgamma(0.5 * (nu + 1.0)) - torch.lgamma(0.5 * nu) - 0.5 * torch.log(math.pi * nu)
        return constant - s.log() - 0.5 * (nu + 1.0) * torch.log1p(((y.to(f) - f) / s).square() / nu)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $(\nu + 1) r / D$ and $(\nu + 1) (r^2 - \nu s^2) / D^2$, where $r = y - f$, $D = \nu s^2 + r^2$."""
        nu, s = self.degrees_of_freedom.to(f), self.scale.to(f)
        residual, core = y.to(f) - f, nu * s.square()
        weight = (nu + 1.0) / (core + residual.square())
        return weight * residual, weight * (residual.square() - core) / (core + residual.square())

    def expected_log_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\mathbb{E}[\log p(y \mid f)]$ by quadrature."""
        f, weights = self._nodes(mean, variance, y.to(mean))
        return (weights * self.log_density(f, y)).sum(0)

    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Evaluate the expectations of both derivatives by quadrature on the same nodes."""
        f, weights = self._nodes(mean, variance, y.to(mean))
        first, second = self.derivatives(f, y)
        return (weights * first).sum(0), (weights * second).sum(0)

    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Integrate $\mathcal{N}(y \mid m, v + s^2 / \lambda)$ over the precision $\lambda$."""
        residual = y.to(mean) - mean
        log_precision, log_weight = self._mixture(residual + torch.zeros_like(variance))
        spread = variance + self.scale.to(mean).square() * torch.exp(-log_precision)
        log_normal = -0.5 * (residual.square() / spread + spread.log() + math.log(2.0 * math.pi))
        return (log_normal + log_weight).logsumexp(0)

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the mean."""
        return mean.expand(self.predictive_variance(mean, variance).shape)

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $v + s^2 \nu / (\nu - 2)$."""
        nu, s = self.degrees_of_freedom.to(mean), self.scale.to(mean)
        return variance + s.square() * nu / (nu - 2.0) + torch.zeros_like(mean)

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        r"""Bisect the mixture of normal distribution functions over the precision $\lambda$."""
        spread = self.predictive_variance(mean, variance).sqrt()
        # With an axis for the probabilities, between that of the precision and the others.
        log_precision, log_weight = (part.unsqueeze(1) for part in self._mixture(torch.zeros_like(spread).double()))
        deviation = (
            variance.double() + self.scale.to(spread.device).double().square() * torch.exp(-log_precision)
        ).sqrt()

        def cumulative(c: Tensor) -> Tensor:
            below: Tensor = torch.special.ndtr((c - mean) / deviation)
            return (below * log_weight.exp()).sum(0)

        return continuous_quantiles(cumulative, mean.expand_as(spread), spread, probabilities)

    @torch.no_grad()
    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Average the normal distribution function over the precision $\lambda$."""
        y = y.to(mean.device).double()
        residual = y - mean.double() + torch.zeros_like(self.predictive_variance(mean, variance)).double()
        log_precision, log_weight = self._mixture(torch.zeros_like(residual))
        spread = (variance.double() + self.scale.to(y).square() * torch.exp(-log_precision)).sqrt()
        below: Tensor = torch.special.ndtr(residual / spread)
        return (below * log_weight.exp()).sum(0)

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw a precision, then Gaussian noise."""
        nu, s = self.degrees_of_freedom.detach().to(f), self.scale.to(f)
        shape = broadcast_shapes(f.shape, nu.shape, s.shape)
        gamma = torch._standard_gamma(0.5 * nu.expand(shape).contiguous(), generator=generator)
        noise = torch.randn(shape, dtype=f.dtype, device=f.device, generator=generator)
        # A Gamma variable of a small shape can underflow in single precision.
        precision = (gamma / (0.5 * nu)).clamp(min=torch.finfo(f.dtype).tiny)
        return f + s * noise / precision.sqrt()

    def learnable(self) -> dict[str, Tensor]:
        r"""Return $\log(\nu - 2)$ and $\log s$, if they are learned."""
        if not self.is_learned:
            return {}
        return {"degrees_of_freedom": (self.degrees_of_freedom - 2.0).log(), "scale": self.scale.log()}

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "StudentT":
        excess = finite_exp(values["degrees_of_freedom"]).clamp(min=_SMALLEST_EXCESS)
        return replace(self, degrees_of_freedom=2.0 + excess, scale=finite_exp(values["scale"]))

    def _nodes(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "k ..."], Float[Tensor, "k ..."]]:
        r"""Return nodes and weights of expectations under $\mathcal{N}(m, v)$.

        The log density has singularities at $y \pm i a$, with the width $a = \sqrt{\nu} s$. Gauss–Hermite nodes
        do not see it if it is narrower than their spacing. In $x$, with $f = y + a \sinh x$, it is smooth at any
        width, and so is the Gaussian; equally spaced nodes in $x$ take over where $\sqrt{v} > a / 2$ and $y$ is
        within 10 standard deviations of $m$.
        """
        width = (self.degrees_of_freedom.to(mean).sqrt() * self.scale.to(mean)).detach()
        deviation, offset = standard_deviation(variance), mean - y
        spread = torch.maximum(deviation, 0.5 * width)
        center = torch.clamp(offset, -10.0 * spread.detach(), 10.0 * spread.detach())
        with torch.no_grad():
            lower, upper = (torch.asinh((center + z * spread) / width) for z in (-8.5, 8.5))
            grid = torch.linspace(0.0, 1.0, _NUM_NODES, dtype=mean.dtype, device=mean.device)
            x = lower + nodes_first(grid, lower.dim()) * (upper - lower)
            away = width * torch.sinh(x)
        stretched = torch.softmax(torch.cosh(x).log() - 0.5 * ((away - center) / spread).square(), 0)
        nodes, weights = (nodes_first(part, x.dim() - 1) for part in gauss_hermite(_NUM_NODES, mean.dtype, mean.device))
        is_wide = (deviation > 0.5 * width) & (offset.abs() < 10.0 * deviation)
        return torch.where(is_wide, y + away, mean + deviation * nodes), torch.where(is_wide, stretched, weights)

    def _mixture(self, residual: Float[Tensor, "..."]) -> tuple[Float[Tensor, "k ..."], Float[Tensor, "k ..."]]:
        r"""Return nodes $u = \log \lambda$ that matter for the residuals, and their log weights.

        Left of its peak the integrand falls at least as $\exp(\frac{\nu + 1}{2} u)$, and right of it as
        $\exp(-\frac{\nu}{2} e^u)$; without variance of $f$ the peak is at $-\log(1 + r^2 / (\nu s^2))$.
        """
        nu, s = self.degrees_of_freedom.to(residual), self.scale.to(residual)
        with torch.no_grad():
            left, right = 2.0 * DROP / (nu + 1.0), 2.0 * DROP / nu
            lower = -torch.log1p((residual / s).square() / nu) - left - (2.0 * left).sqrt()
            upper = torch.log1p(right + (2.0 * right).sqrt())
            grid = torch.linspace(0.0, 1.0, _NUM_MIXTURE_NODES, dtype=residual.dtype, device=residual.device)
            u = lower + nodes_first(grid, lower.dim()) * (upper - lower)
            log_step = ((upper - lower) / (_NUM_MIXTURE_NODES - 1)).log()
        half = 0.5 * nu
        return u, half * half.log() - torch.lgamma(half) + half * (u - u.exp()) + log_step
