"""The laws that every acquisition function of a finite pool must obey."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pytest
import torch
from tests.support.problems import random_sparse_gp
from torch import Tensor
from torch.testing import assert_close

from streamgp.acquisition import pool_belief
from streamgp.acquisition.pool import Pool
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.errors import DTypeError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood, Binomial, Preference, Volatility
from streamgp.testing.tolerances import rounding

__all__ = ["PoolLaws"]

both_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


class PoolLaws(ABC):
    """Inherit, name the function, and say how it is called.

    Attributes:
        covers: Name of the function.
        least_precise: The dtype whose tolerance results keep, whatever that of the model.
    """

    covers: ClassVar[str]
    least_precise: ClassVar[torch.dtype] = torch.float64

    @abstractmethod
    def score(self, gp: Any, pool_X: Any, candidates: Any = None, *, likelihood: Any, pending: Any = None) -> Tensor:
        """Score candidates."""

    def likelihood(self) -> AbstractLikelihood:
        """Of the twelve members of the pool, one with other numbers of trials than the next."""
        return Binomial(torch.arange(4.0, 16.0))

    def problem(self, rng: torch.Generator, dtype: torch.dtype = torch.float64) -> tuple[SparseGP, Tensor]:
        """A random GP and a pool."""
        return random_sparse_gp(rng, dtype=dtype).gp, torch.rand(12, 2, generator=rng, dtype=torch.float64).to(dtype)

    def limits(self, gp: SparseGP) -> dict[str, Any]:
        """Tolerances of results: the condition of the kernel matrix times the rounding of model or function."""
        factor = gp.process.factor
        dtype = torch.float32 if torch.float32 in (factor.dtype, self.least_precise) else factor.dtype
        return rounding(dtype, condition=float(torch.linalg.cond(factor.double())) ** 2)

    @both_dtypes
    def test_a_candidate_scores_the_same_among_others_and_alone(self, rng: torch.Generator, dtype: torch.dtype) -> None:
        gp, X = self.problem(rng, dtype)
        everyone = self.score(gp, X, likelihood=self.likelihood())
        assert everyone.shape == (12,)
        assert everyone.dtype == dtype
        some = self.score(gp, X, [7, 2, 5], likelihood=self.likelihood())
        assert_close(some, everyone[[7, 2, 5]], **self.limits(gp))
        assert everyone.max() - everyone.min() > 1e-3

    @both_dtypes
    def test_to_await_an_observation_is_to_condition_on_its_mean(
        self, rng: torch.Generator, dtype: torch.dtype
    ) -> None:
        gp, X = self.problem(rng, dtype)
        awaited = self.score(gp, X, likelihood=self.likelihood(), pending=[3, 8, 4])
        conditioned: SparseGP | ConditionedGP = gp
        for member in (3, 8, 4):
            pool = Pool.read(conditioned, X, likelihood=self.likelihood(), targets=None, weights=None, pending=None)
            noise = 1.0 / pool.precision(torch.tensor([member]))
            place = X[member : member + 1]
            conditioned = conditioned.condition(place, conditioned.predict(place).mean, noise_variance=noise)
        assert_close(awaited, self.score(conditioned, X, likelihood=self.likelihood()), **self.limits(gp))

    def test_blocks_change_nothing(self, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
        gp, X = self.problem(rng)
        whole = self.score(gp, X, likelihood=self.likelihood(), pending=[0])
        monkeypatch.setattr(pool_belief, "_BLOCK_NUMBERS", 100)
        parts = self.score(gp, X, likelihood=self.likelihood(), pending=[0])
        assert_close(parts, whole, **self.limits(gp))

    def test_arguments_that_make_no_sense_are_refused(self, rng: torch.Generator) -> None:
        gp, X = self.problem(rng)
        right = self.likelihood()
        with pytest.raises(UnsupportedError, match="a pool has one belief"):
            self.score(random_sparse_gp(rng, batch_shape=(2,)).gp, X, likelihood=right)
        with pytest.raises(ShapeError, match="pool_X must have 2 columns"):
            self.score(gp, X[:, :1], likelihood=right)
        with pytest.raises(ValueRangeError, match="pool_X must be finite"):
            self.score(gp, torch.full_like(X, torch.nan), likelihood=right)
        with pytest.raises(ValueRangeError, match="candidates must be indices from 0 to 11"):
            self.score(gp, X, [3, 12], likelihood=right)
        with pytest.raises(ValueRangeError, match="must name each member once, but 3 comes 2 times"):
            self.score(gp, X, [3, 4, 3], likelihood=right)
        with pytest.raises(DTypeError, match="A mask becomes indices"):
            self.score(gp, X, X[:, 0] > 0.5, likelihood=right)
        with pytest.raises(ShapeError, match="must be a number or have shape"):
            self.score(gp, X, likelihood=Binomial(torch.ones(5)))
        with pytest.raises(UnsupportedError, match="observed one by one"):
            self.score(gp, X, likelihood=Preference())
        with pytest.raises(UnsupportedError, match="mean zero everywhere"):
            self.score(gp, X, likelihood=Volatility())
