"""A sparse GP given further observations."""

from dataclasses import dataclass
from typing import final

from torch import Tensor

from streamgp.checks import ArrayLike
from streamgp.conditioning.abstract_gp import AbstractGP
from streamgp.conditioning.gaussian import ConditionedProcess, observe, predict_jointly
from streamgp.conditioning.observation import Observation, prior_belief
from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import DenseBelief, SiteInfo, SiteRule
from streamgp.storage import register

__all__ = ["ConditionedGP", "condition"]


@register
@final
@dataclass(frozen=True, eq=False, repr=False)
class ConditionedGP(AbstractGP):
    """A sparse GP conditioned exactly on observations, made by `SparseGP.condition`.

    It grows with the observations it is conditioned on; to learn from a stream in constant size use `SparseGP.absorb`.

    ```python
    import torch
    from gpytorch.kernels import RBFKernel

    gp = sg.SparseGP.from_prior(RBFKernel(), torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1))
    X = torch.tensor([[0.2], [0.7]], dtype=torch.float64)
    once = gp.condition(X, torch.tensor([0.5, -0.1], dtype=torch.float64), noise_variance=0.01)
    again = once.condition(X + 0.1, torch.tensor([0.4, 0.0], dtype=torch.float64), noise_variance=0.01)
    again.predict(X).mean  # as if all four had come at once
    ```

    Attributes:
        conditioned_process: The process behind the object.
        site_info: Diagnostics of the sites of the last observations; None if those were Gaussian.
    """

    conditioned_process: ConditionedProcess
    site_info: SiteInfo | None = None

    @property
    def process(self) -> ConditionedProcess:
        """The process behind the object."""
        return self.conditioned_process

    @property
    def num_observations(self) -> int:
        """Number of observations that the sparse GP was conditioned on."""
        return self.process.factor.shape[-1]

    @property
    def jitter(self) -> Tensor:
        """Noise that the factorization of the observations' covariance had to add to one of average prior variance.

        Others got it in proportion to theirs, so that rows of different units are treated alike.
        """
        return self.process.jitter

    def condition(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: str | AbstractLikelihood | None = None,
        sites: str | SiteRule = "variational",
    ) -> "ConditionedGP":
        """Condition again; sites are found from the belief at hand. See `SparseGP.condition`."""
        return condition(self.process, self._read(X, y, noise_variance, likelihood, sites))

    def __repr__(self) -> str:
        return f"ConditionedGP(num_observations={self.num_observations}, {self._describe()})"


def condition(process: SparseProcess | ConditionedProcess, observation: Observation) -> ConditionedGP:
    """Condition a process on checked observations."""
    predictive = predict_jointly(process, observation.inputs)
    prior = process.prior if isinstance(process, SparseProcess) else process.base.prior
    targets, noise, info = observation.to_gaussian(
        lambda: DenseBelief(predictive.mean, predictive.covariance),
        lambda: prior_belief(prior, predictive.inputs),
    )
    return ConditionedGP(observe(process, predictive, targets, noise), info)
