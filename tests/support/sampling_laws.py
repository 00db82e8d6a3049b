"""The laws that every acquisition function that draws from a model and chooses among candidates must obey."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pytest
import torch
from botorch.models import SingleTaskGP
from tests.support.problems import random_sparse_gp
from torch import Tensor

from streamgp.errors import ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Gaussian
from streamgp.models import OnlineGP

__all__ = ["SamplingLaws"]

both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


class SamplingLaws(ABC):
    """Inherit, name the function, and say how it is called."""

    covers: ClassVar[str]

    @abstractmethod
    def choose(self, model: Any, candidates: Any, *, q: int, **options: Any) -> Tensor:
        """Choose among candidates, with little work."""

    def model(self, rng: torch.Generator, dtype: torch.dtype = torch.float64) -> OnlineGP:
        """A random model of two-dimensional inputs."""
        return OnlineGP(random_sparse_gp(rng, dtype=dtype).gp, Gaussian(0.01))

    def certain_model(self, X: Tensor, y: Tensor) -> SingleTaskGP:
        """An exact GP that knows its values at the inputs to within a hundredth."""
        model = SingleTaskGP(X, y.unsqueeze(-1), torch.full_like(y, 1e-6).unsqueeze(-1), outcome_transform=None)
        model.covar_module.lengthscale = 0.05
        return model.eval()

    @both_dtypes
    @pytest.mark.parametrize("sampling", ["joint", "paths"])
    def test_points_are_distinct_candidates_and_repeat_with_their_seed(
        self, rng: torch.Generator, sampling: str, dtype: torch.dtype
    ) -> None:
        model, C = self.model(rng, dtype), torch.rand(40, 2, generator=rng, dtype=dtype)
        first, second = (
            self.choose(model, C, q=12, sampling=sampling, generator=torch.Generator().manual_seed(0)) for _ in range(2)
        )
        assert torch.equal(first, second)
        assert first.dtype == dtype
        assert len(torch.unique(first, dim=0)) == 12
        assert (first.unsqueeze(1) == C).all(-1).any(1).all()

    @pytest.mark.parametrize("maximize", [True, False])
    def test_a_model_that_is_certain_gives_the_best_candidates(self, rng: torch.Generator, maximize: bool) -> None:
        C = torch.cartesian_prod(torch.linspace(0, 1, 5), torch.linspace(0, 1, 5)).double()
        y = torch.randperm(25, generator=rng).double()
        y = (y - y.mean()) / y.std()
        chosen = self.choose(self.certain_model(C, y), C, q=3, maximize=maximize, generator=rng)
        expected = C[y.argsort(descending=maximize)[:3]]
        assert torch.equal(chosen, expected)

    def test_the_model_is_untouched_and_nothing_carries_gradients(self, rng: torch.Generator) -> None:
        model, C = self.model(rng), torch.rand(30, 2, generator=rng).double()
        before = model.posterior(C).mean
        chosen = self.choose(model, C.requires_grad_(), q=2, generator=rng)
        assert not chosen.requires_grad
        assert torch.equal(model.posterior(C.detach()).mean, before)

    def test_a_function_that_draws_candidates_is_asked_for_them(self, rng: torch.Generator) -> None:
        asked = []

        def draw(num: int) -> Tensor:
            asked.append(num)
            return torch.rand(num, 2, generator=rng).double()

        self.choose(self.model(rng), draw, q=2, num_candidates=60, generator=rng)
        assert asked[-1] == 60

    def test_models_and_candidates_that_make_no_sense_are_refused(self, rng: torch.Generator) -> None:
        C = torch.rand(20, 2, generator=rng).double()
        gp = random_sparse_gp(rng).gp
        with pytest.raises(UnsupportedError, match=r"one output without leading axes, but this one has 2 outputs"):
            self.choose(OnlineGP([gp, gp]), C, q=1)
        with pytest.raises(ShapeError, match=r"at least \d+ rows.*but have shape \(2, 2\)"):
            self.choose(self.model(rng), C[:2], q=20)
        with pytest.raises(ValueRangeError, match=r"candidates must be finite"):
            self.choose(self.model(rng), torch.full_like(C, torch.nan), q=1)
        with pytest.raises(ValueRangeError, match=r"q must be a whole number"):
            self.choose(self.model(rng), C, q=0)
