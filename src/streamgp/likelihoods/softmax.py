"""Several classes."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_count
from streamgp.errors import UnsupportedError
from streamgp.likelihoods.multi_latent import AbstractMultiLatentLikelihood
from streamgp.likelihoods.parameters import Probabilities, check_support, to_float

__all__ = ["Softmax"]


@final
@dataclass(frozen=True, eq=False, init=False)
class Softmax(AbstractMultiLatentLikelihood):
    r"""Classes $0, \dots, C - 1$ with $P(y = c \mid f) = e^{f_c} / \sum_j e^{f_j}$.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    labels = (3 * X[:, 0]).floor().clamp(max=2)
    result = sg.fit(X, labels, likelihood=sg.likelihoods.Softmax(3), num_inducing=10)
    latent = result.predict(X[:4])
    result.likelihood.predictive_probabilities(latent.mean, latent.variance)  # (3, 4)
    ```

    Attributes:
        num_classes: $C$, also the number of latent functions.
    """

    name: ClassVar[str] = "softmax"
    outcome_kind: ClassVar[str] = "class"
    is_log_concave: ClassVar[bool] = True

    num_classes: int

    def __init__(self, num_classes: int) -> None:
        """Check and keep the number of classes."""
        self._freeze(num_classes=check_count(num_classes, "num_classes", minimum=2))

    @classmethod
    def starting(cls) -> "Softmax":
        """Refuse: the number of classes has no default."""
        raise UnsupportedError(
            "A Softmax likelihood needs to know how many classes there are. Pass Softmax(num_classes)."
        )

    @property
    def num_latents(self) -> int:  # type: ignore[override] # as many as classes
        """Number of latent functions."""
        return self.num_classes

    @property
    def support(self) -> tuple[float, float]:  # type: ignore[override] # depends on the number of classes
        """The first and the last class."""
        return 0.0, self.num_classes - 1.0

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all are classes."""
        y = to_float(y, "y")
        return check_support(
            y,
            (y >= 0) & (y < self.num_classes) & (y == y.round()),
            expected=f"Softmax targets must be whole numbers from 0 to {self.num_classes - 1}",
            advice="Number the labels from 0 on, and give Softmax as many classes as there are.",
        )

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $f_y - \log \sum_j e^{f_j}$."""
        return (torch.log_softmax(f, dim=-2) * self._is_class(f, y)).sum(-2, keepdim=True)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $[y = c] - p_c$ and $-p_c (1 - p_c)$."""
        p = torch.softmax(f, dim=-2)
        return self._is_class(f, y) - p, -p * (1.0 - p)

    def predictive_probabilities(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """Evaluate the probabilities `(..., C, n)` of all classes; they sum to one."""
        return self.expectation(lambda f: torch.softmax(f, dim=-2), mean, variance)

    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """Evaluate the log probability of observed classes, with the latent axis kept at size one."""
        p = self.predictive_probabilities(mean, variance)
        return (p.log() * self._is_class(p, y)).sum(-2, keepdim=True)

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Refuse: classes have no order."""
        raise UnsupportedError("Classes have no mean. Use Softmax.predictive_probabilities.")

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Refuse: classes have no order."""
        raise UnsupportedError("Classes have no variance. Use Softmax.predictive_probabilities.")

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        """Refuse: classes have no order."""
        raise UnsupportedError("Classes have no quantiles. Use Softmax.predictive_probabilities.")

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw classes `(..., n)`."""
        p = torch.softmax(f.detach(), dim=-2).movedim(-2, -1)
        drawn = torch.multinomial(p.reshape(-1, self.num_classes), 1, generator=generator)
        return drawn.reshape(p.shape[:-1]).to(f)

    def _is_class(self, f: Tensor, y: Tensor) -> Tensor:
        """One for the latent value of the observed class, zero for the others: `(..., C, n)`."""
        classes = torch.arange(self.num_classes, device=f.device).unsqueeze(-1)
        return (y.to(f.device) == classes).to(f)
