"""The laws that every GP which can be conditioned must obey."""

import copy
import itertools
import pickle
from abc import ABC, abstractmethod
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.support.problems import AbstractGPProblem, NoisyObservations, random_observations, random_sparse_gp
from tests.support.reference import ReferenceMoments, assert_predicts, assert_within, condition_dense
from torch import Tensor
from torch.testing import assert_close

from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.testing.tolerances import rounding

__all__ = ["BATCH_SHAPES", "DTYPES", "ConditioningLaws"]

# One axis repeats what two show, so that it is left to the slow tests.
BATCH_SHAPES: list[Any] = [(), (2, 1), pytest.param((3,), marks=pytest.mark.thorough)]
DTYPES = [torch.float32, torch.float64]
_seeds = st.integers(0, 2**31)
_sizes = st.integers(0, 5)
_dims = st.integers(1, 3)


class ConditioningLaws(ABC):
    """Inherit, and say how the GP is made from a random sparse GP and which observations it holds already."""

    @abstractmethod
    def make(self, problem: AbstractGPProblem, held: NoisyObservations) -> SparseGP | ConditionedGP:
        """The GP under test: the sparse GP of `problem` after `held` was observed."""

    @abstractmethod
    def num_held(self) -> int:
        """Number of observations that the GP under test holds already."""

    def problem(
        self, rng: torch.Generator, *, batch_shape: tuple[int, ...], dtype: torch.dtype, num_dims: int
    ) -> AbstractGPProblem:
        """A random sparse GP; one of inducing points, unless another is asked for."""
        return random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype, num_dims=num_dims)

    def draw(
        self, seed: int, num_observations: int, num_dims: int, batch_shape: tuple[int, ...], dtype: torch.dtype
    ) -> tuple[AbstractGPProblem, NoisyObservations, NoisyObservations, Tensor]:
        """A random sparse GP, observations held, new observations, and test inputs."""
        rng = torch.Generator().manual_seed(seed)
        problem = self.problem(rng, batch_shape=batch_shape, dtype=dtype, num_dims=num_dims)
        held = random_observations(
            rng, num_observations=self.num_held(), num_dims=num_dims, batch_shape=batch_shape, dtype=dtype
        )
        new = random_observations(
            rng, num_observations=num_observations, num_dims=num_dims, batch_shape=batch_shape, dtype=dtype
        )
        W = torch.rand(*batch_shape, 4, num_dims, generator=rng, dtype=torch.float64).to(dtype)
        return problem, held, new, W

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
    @given(seed=_seeds, d=_dims)
    def test_conditioning_on_nothing_changes_nothing(
        self, batch_shape: tuple[int, ...], dtype: torch.dtype, seed: int, d: int
    ) -> None:
        problem, held, new, W = self.draw(seed, 3, d, batch_shape, dtype)
        gp = self.make(problem, held)
        after = condition(gp, new.part(slice(0, 0)))
        assert_same_prediction(after, gp, W, **rounding(dtype, scale=problem.scale))

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
    @given(seed=_seeds, n=_sizes, d=_dims)
    def test_conditioning_equals_the_dense_reference(
        self, batch_shape: tuple[int, ...], dtype: torch.dtype, seed: int, n: int, d: int
    ) -> None:
        problem, held, new, W = self.draw(seed, n, d, batch_shape, dtype)
        prediction = condition(self.make(problem, held), new).predict(W)
        assert_predicts(prediction, dense(problem, [held, new], W))

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
    @given(seed=_seeds, n=_sizes, cut=_sizes, d=_dims)
    def test_conditioning_in_two_parts_equals_conditioning_at_once(
        self, batch_shape: tuple[int, ...], dtype: torch.dtype, seed: int, n: int, cut: int, d: int
    ) -> None:
        problem, held, new, W = self.draw(seed, n, d, batch_shape, dtype)
        gp = self.make(problem, held)
        twice = condition(condition(gp, new.part(slice(0, cut))), new.part(slice(cut, None)))
        assert_same_prediction(twice, condition(gp, new), W, like=dense(problem, [held, new], W))

    @pytest.mark.parametrize("dtype", DTYPES)
    @given(seed=_seeds, n=_sizes)
    def test_the_order_of_observations_does_not_matter(self, dtype: torch.dtype, seed: int, n: int) -> None:
        problem, held, new, W = self.draw(seed, n, 2, (), dtype)
        gp = self.make(problem, held)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        like = dense(problem, [held, new], W)
        assert_same_prediction(condition(gp, new.part(order)), condition(gp, new), W, like=like)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
    @given(seed=_seeds, n=_sizes)
    def test_a_batched_call_equals_a_loop(
        self, batch_shape: tuple[int, ...], dtype: torch.dtype, seed: int, n: int
    ) -> None:
        problem, held, new, W = self.draw(seed, n, 2, batch_shape, dtype)
        batched = condition(self.make(problem, held), new).predict(W)
        limits = dense(problem, [held, new], W).limits(dtype)
        for index in itertools.product(*map(range, batch_shape)):
            alone = condition(self.make(problem.member(index), held.member(index)), new.member(index)).predict(W[index])
            assert_within((batched.mean[index] - alone.mean).abs(), limits.mean[index], "mean")
            assert_within((batched.variance[index] - alone.variance).abs(), limits.variance[index], "variance")

    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
    @given(seed=_seeds, n=_sizes)
    def test_fantasies_equal_a_loop_over_targets(
        self, batch_shape: tuple[int, ...], dtype: torch.dtype, seed: int, n: int
    ) -> None:
        problem, held, new, W = self.draw(seed, n, 2, batch_shape, dtype)
        gp = self.make(problem, held)
        y = torch.stack([new.targets, -new.targets, 3 * new.targets])
        fantasies = gp.condition(new.inputs, y, noise_variance=new.noise_variance)
        again = fantasies.condition(new.inputs, y, noise_variance=new.noise_variance)
        largest = NoisyObservations(new.inputs, y[-1], new.noise_variance)
        once, twice = (dense(problem, [held, *[largest] * times], W).limits(dtype) for times in (1, 2))
        for i in range(3):
            told = NoisyObservations(new.inputs, y[i], new.noise_variance)
            alone = condition(gp, told)
            first, second = fantasies.predict(W), again.predict(W)
            assert_within((first.mean[i] - alone.predict(W).mean).abs(), once.mean, "mean")
            assert_within((first.variance - alone.predict(W).variance).abs(), once.variance, "variance")
            assert_within((second.mean[i] - condition(alone, told).predict(W).mean).abs(), twice.mean, "second mean")

    @pytest.mark.parametrize("batch_shape", [(), (2,)])
    def test_gradients_reach_inputs_targets_and_noise(self, batch_shape: tuple[int, ...]) -> None:
        problem, held, new, W = self.draw(0, 3, 2, batch_shape, torch.float64)
        gp = self.make(problem, held)

        def moments(X: Tensor, y: Tensor, noise: Tensor, W: Tensor) -> tuple[Tensor, Tensor]:
            prediction = gp.condition(X, y, noise_variance=noise).predict(W, covariance=True)
            return prediction.mean, prediction.covariance

        inputs = [t.clone().requires_grad_(True) for t in (new.inputs, new.targets, new.noise_variance, W)]
        assert torch.autograd.gradcheck(moments, inputs)

    @pytest.mark.parametrize("dtype", DTYPES)
    @given(seed=_seeds, n=_sizes)
    def test_variance_never_grows(self, dtype: torch.dtype, seed: int, n: int) -> None:
        problem, held, new, W = self.draw(seed, n, 2, (), dtype)
        gp = self.make(problem, held)
        shrunk = gp.predict(W).variance - condition(gp, new).predict(W).variance
        assert (shrunk >= -rounding(dtype, scale=problem.scale)["atol"]).all()

    @pytest.mark.parametrize("kind", ["number", "vector", "matrix"])
    def test_noise_is_taken_as_a_number_a_vector_or_a_matrix(self, kind: str) -> None:
        problem, held, new, W = self.draw(1, 3, 2, (), torch.float64)
        gp = self.make(problem, held)
        full = torch.diag_embed(torch.full((3,), 0.3, dtype=torch.float64))
        noises: dict[str, float | Tensor] = {"number": 0.3, "vector": full.diagonal(), "matrix": full}
        noise = noises[kind]
        observed = gp.condition(new.inputs, new.targets, noise_variance=noise)
        expected = condition(gp, NoisyObservations(new.inputs, new.targets, full.diagonal()))
        assert_same_prediction(observed, expected, W, **rounding(W.dtype))

    def test_correlated_noise_equals_the_dense_reference(self) -> None:
        problem, held, new, W = self.draw(2, 3, 2, (), torch.float64)
        root = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        noise = 0.1 * root @ root.T
        observed = self.make(problem, held).condition(new.inputs, new.targets, noise_variance=noise).predict(W)
        inputs, targets = torch.cat([held.inputs, new.inputs]), torch.cat([held.targets, new.targets])
        joint = torch.block_diag(held.noise_variance.diag(), noise)
        expected = condition_dense(problem.gp, inputs, targets, joint, W)
        assert_predicts(observed, expected)

    def test_the_original_is_untouched(self) -> None:
        problem, held, new, W = self.draw(3, 4, 2, (), torch.float64)
        gp = self.make(problem, held)
        before = gp.predict(W).mean.clone(), gp.predict(W).covariance.clone()
        condition(condition(gp, new), new).sample(W, 2)
        assert torch.equal(gp.predict(W).mean, before[0])
        assert torch.equal(gp.predict(W).covariance, before[1])
        with pytest.raises(AttributeError):
            gp.anything = 1  # type: ignore[union-attr]

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_copies_and_pickles_predict_identically(self, dtype: torch.dtype) -> None:
        problem, held, new, W = self.draw(4, 3, 2, (), dtype)
        gp = condition(self.make(problem, held), new)
        for twin in (copy.copy(gp), copy.deepcopy(gp), pickle.loads(pickle.dumps(gp))):
            assert torch.equal(twin.predict(W).mean, gp.predict(W).mean)
            assert torch.equal(twin.predict(W).variance, gp.predict(W).variance)

    @pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
    def test_samples_have_the_predicted_moments(self, batch_shape: tuple[int, ...]) -> None:
        problem, held, new, W = self.draw(5, 3, 2, batch_shape, torch.float64)
        gp = condition(self.make(problem, held), new)
        samples = gp.sample(W, 20_000, generator=torch.Generator().manual_seed(0))
        prediction = gp.predict(W)
        assert samples.shape == (20_000, *batch_shape, 4)
        error = prediction.variance.sqrt() / 20_000**0.5
        assert ((samples.mean(0) - prediction.mean).abs() < 5 * error).all()
        centered = (samples - prediction.mean).movedim(0, -1)
        empirical = centered @ centered.mT / 20_000
        spread = prediction.variance.unsqueeze(-1) * prediction.variance.unsqueeze(-2)
        assert ((empirical - prediction.covariance).abs() < 5 * (2 * spread / 20_000).sqrt()).all()

    def test_samples_repeat_with_their_seed(self) -> None:
        problem, held, _, W = self.draw(6, 3, 2, (), torch.float64)
        gp = self.make(problem, held)
        first, second = (gp.sample(W, 3, generator=torch.Generator().manual_seed(1)) for _ in range(2))
        assert torch.equal(first, second)


def condition(gp: SparseGP | ConditionedGP, observations: NoisyObservations) -> ConditionedGP:
    """Condition a GP on observations."""
    return gp.condition(observations.inputs, observations.targets, noise_variance=observations.noise_variance)


def assert_same_prediction(
    first: SparseGP | ConditionedGP,
    second: SparseGP | ConditionedGP,
    W: Tensor,
    *,
    like: ReferenceMoments | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Assert that two GPs agree in mean, variance and covariance.

    Args:
        first: One GP.
        second: The other one.
        W: Inputs of the predictions.
        like: A reference of what they predict, whose condition bounds the difference.
        rtol: Relative tolerance, instead of a reference.
        atol: Absolute tolerance, instead of a reference.
    """
    for name in ("mean", "variance", "covariance"):
        one, other = (getattr(gp.predict(W), name) for gp in (first, second))
        if like is None:
            assert_close(one, other, rtol=rtol, atol=atol, msg=f"{name} differs by {(one - other).abs().max():.2e}")
        else:
            assert_within((one - other).abs(), 2 * getattr(like.limits(one.dtype), name), name)


def dense(problem: AbstractGPProblem, blocks: list[NoisyObservations], W: Tensor) -> ReferenceMoments:
    """The reference for a random sparse GP that was conditioned on all blocks of observations."""
    inputs, targets, noise = (
        torch.cat([getattr(block, name) for block in blocks], dim=axis)
        for name, axis in (("inputs", -2), ("targets", -1), ("noise_variance", -1))
    )
    return condition_dense(problem.gp, inputs, targets, torch.diag_embed(noise), W)
