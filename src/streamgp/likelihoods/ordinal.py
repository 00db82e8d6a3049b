"""Grades: ordered classes, whose edges are learned."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike, check_count
from streamgp.errors import ShapeError, ValueRangeError
from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.intervals import interval_derivatives, log_interval, standardized
from streamgp.likelihoods.parameters import Probabilities, finite_exp, to_parameter, to_probabilities
from streamgp.shapes import broadcast_shapes

__all__ = ["Ordinal"]

# Standard deviation of the logarithms of gaps between edges a priori, around one: a grade that nobody gave has none.
_GAP_DEVIATION = 1.5
# Of probabilities of quantiles, which grades reach exactly.
_ROUNDING = 1e-12


@final
@dataclass(frozen=True, eq=False, init=False)
class Ordinal(AbstractLikelihood):
    r"""Grades $0, \dots, K - 1$ in order, with $P(y \le k \mid f) = \Phi(c_{k + 1} - f)$.

    A grade says between which edges $c_k$ and $c_{k + 1}$ a latent value with unit noise lies. The scale of the latent
    function is that of the noise; with learned edges grades need not be equally wide.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    stars = (4 * X[:, 0]).round()  # none to four
    result = sg.fit(X, stars, likelihood=sg.likelihoods.Ordinal.of(5), num_inducing=10)
    latent = result.predict(X[:3])
    result.likelihood.predictive_mean(latent.mean, latent.variance)  # mean grades
    ```

    Attributes:
        edges: The edges $c_1 < \dots < c_{K - 1}$ between grades.
        is_learned: Whether training may change them.
        num_nodes: Number of Gauss–Hermite nodes.

    References:
        Chu, Ghahramani (2005), Gaussian processes for ordinal regression.
    """

    name: ClassVar[str] = "ordinal"
    outcome_kind: ClassVar[str] = "count"
    is_log_concave: ClassVar[bool] = True
    link: ClassVar[str] = "ordinal"  # type: ignore[misc]

    edges: Float[Tensor, " k"]
    is_learned: bool
    num_nodes: int

    def __init__(
        self, edges: ArrayLike = (-1.5, -0.5, 0.5, 1.5), *, is_learned: bool = True, num_nodes: int = 64
    ) -> None:
        """Check and keep the edges.

        Args:
            edges: The edges, one fewer than grades, in ascending order; where they start, if they are learned.
            is_learned: Whether training may change them.
            num_nodes: Number of Gauss–Hermite nodes.
        """
        values = to_parameter(edges if isinstance(edges, Tensor) else list(edges), "edges")
        if values.dim() != 1 or not len(values):
            raise ShapeError(
                f"edges must have shape (k,), one fewer than there are grades, but has shape {tuple(values.shape)}. "
                "For two grades pass a list with one edge."
            )
        if not bool((values.detach().diff() > 0).all()):
            raise ValueRangeError(f"edges must ascend, but are {values.tolist()}. Sort them, and leave out copies.")
        self._freeze(edges=values, is_learned=is_learned, num_nodes=check_count(num_nodes, "num_nodes"))

    @classmethod
    def of(cls, num_grades: int) -> "Ordinal":
        """Make one of so many grades, whose edges start one apart and are learned."""
        count = check_count(num_grades, "num_grades", minimum=2)
        return cls(torch.arange(count - 1, dtype=torch.float64) - 0.5 * (count - 2))

    @property
    def support(self) -> tuple[float, float]:  # type: ignore[override] # follows from the edges
        """The first and the last grade."""
        return 0.0, float(len(self.edges))

    @property
    def response_range(self) -> tuple[float, float]:  # type: ignore[override] # likewise
        """Ends of mean grades."""
        return self.support

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the mean grade $\sum_k \Phi(f - c_k)$."""
        reached: Tensor = torch.special.ndtr(f.unsqueeze(-1) - self.edges.to(f))
        return reached.sum(-1)

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log(\Phi(c_{y + 1} - f) - \Phi(c_y - f))$."""
        return log_interval(*self._bounds(f, y, torch.ones_like(f))).to(f)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Evaluate both derivatives of the log probability of a grade."""
        first, second = interval_derivatives(*self._bounds(f, y, torch.ones_like(f)))
        return first.to(f), second.to(f)

    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate the probability of a grade with noise of variance $1 + v$."""
        return log_interval(*self._bounds(mean, y, (1.0 + variance).sqrt())).to(mean)

    def log_predictive_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Evaluate both derivatives of the log predictive density in the mean."""
        deviation = (1.0 + variance).sqrt()
        first, second = interval_derivatives(*self._bounds(mean, y, deviation))
        return first.to(mean) / deviation, second.to(mean) / deviation.square()

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the mean grade."""
        return self._reached(mean, variance).sum(-1)

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the variance of the grade."""
        reached = self._reached(mean, variance)
        odd = 2.0 * torch.arange(len(self.edges), dtype=reached.dtype, device=reached.device) + 1.0
        return ((reached * odd).sum(-1) - reached.sum(-1).square()).clamp_min(0.0)

    def conditional_variance(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the variance of the grade given the latent value."""
        return self.predictive_variance(f, torch.zeros_like(f))

    def expected_curvature(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Average the curvature over all grades, with their predicted probabilities."""
        m, v = torch.broadcast_tensors(mean, variance)
        share = self.predictive_probabilities(m, v)
        grades = torch.arange(share.shape[-1], dtype=m.dtype, device=m.device).expand_as(share)
        m, v = m.unsqueeze(-1).expand_as(share), v.unsqueeze(-1).expand_as(share)
        return -(share * self.expected_derivatives(m, v, grades)[1]).sum(-1)

    def predictive_probabilities(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]
    ) -> Float[Tensor, "... k"]:
        """Evaluate the probability of each grade, along a new last axis."""
        shape = broadcast_shapes(mean.shape, variance.shape)
        grades = torch.arange(len(self.edges) + 1, dtype=mean.dtype, device=mean.device)
        m, v = (each.expand(shape).unsqueeze(-1) for each in (mean, variance))
        return self.log_predictive_density(m, v, grades.expand(*shape, -1)).exp()

    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $P(Y \le y)$."""
        below = 1.0 - self._reached(mean, variance)
        ends = torch.cat([torch.zeros_like(below[..., :1]), below, torch.ones_like(below[..., :1])], dim=-1)
        at = (y.to(mean).floor() + 1.0).clamp(0.0, len(self.edges) + 1.0).long()
        shape = broadcast_shapes(at.shape, ends.shape[:-1])
        return ends.expand(*shape, -1).gather(-1, at.expand(shape).unsqueeze(-1)).squeeze(-1)

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "... p"]:
        """Find the first grades whose cumulative probabilities reach the given ones."""
        below = (1.0 - self._reached(mean, variance)).detach().double()
        wanted = to_probabilities(probabilities, mean)
        return (below.unsqueeze(-2) < wanted.unsqueeze(-1) - _ROUNDING).sum(-1).to(mean)

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw grades."""
        seen = f.detach() + torch.randn(f.shape, dtype=f.dtype, device=f.device, generator=generator)
        return (seen.unsqueeze(-1) > self.edges.detach().to(f)).sum(-1).to(f)

    def learnable(self) -> dict[str, Tensor]:
        """Return the first edge and the logarithms of the gaps, if they are learned."""
        if not self.is_learned:
            return {}
        gaps = {"gaps": self.edges.diff().log()} if len(self.edges) > 1 else {}
        return {"first_edge": self.edges[0], **gaps}

    def log_prior(self) -> Float[Tensor, ""]:
        """Evaluate a weak prior of the gaps, around one, if they are learned."""
        if not self.is_learned:
            return torch.zeros((), dtype=torch.float64)
        return -0.5 * (self.edges.diff().log() / _GAP_DEVIATION).square().sum()

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "Ordinal":
        first = values["first_edge"].reshape(1)
        steps = finite_exp(values["gaps"]) if "gaps" in values else first[:0]
        return replace(self, edges=torch.cat([first, first + steps.cumsum(0)]))

    def _broadcast_fields(self) -> tuple[str, ...]:
        return ()

    def _reached(self, mean: Tensor, variance: Tensor) -> Float[Tensor, "... k"]:
        """Probabilities that an edge is passed, along a new last axis."""
        deviation = (1.0 + variance).sqrt().unsqueeze(-1)
        reached: Tensor = torch.special.ndtr((mean.unsqueeze(-1) - self.edges.to(mean)) / deviation)
        return reached

    def _bounds(self, mean: Tensor, y: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
        """Edges of the observed grades, relative to the mean, in standard deviations."""
        end = self.edges.new_full((1,), math.inf)
        edges = torch.cat([-end, self.edges, end]).to(mean.device)
        grade = y.to(mean.device).long()
        return standardized(edges[grade], mean, deviation), standardized(edges[grade + 1], mean, deviation)
