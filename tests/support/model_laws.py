"""The laws that every model for BoTorch must obey, in the user's units."""

import copy
import pickle
from abc import ABC, abstractmethod
from typing import Any

import gpytorch
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.kernels import RBFKernel
from torch import Tensor
from torch.testing import assert_close

from streamgp.conditioning import SparseGP
from streamgp.likelihoods import Gaussian
from streamgp.models import LatentPosterior, OnlineGP
from streamgp.testing.tolerances import approximation, rounding

__all__ = ["DTYPES", "ModelLaws", "assert_same_posterior", "exact_pair", "limits", "uniform"]

DTYPES = [torch.float32, torch.float64]
# One axis repeats what two show, so that it is left to the slow tests.
BATCH_SHAPES: list[Any] = [(), (2, 1), pytest.param((3,), marks=pytest.mark.thorough)]
both_dtypes = pytest.mark.parametrize("dtype", DTYPES)


class ModelLaws(ABC):
    """Inherit, and say how the model is made and what can be observed."""

    num_outputs: int = 1
    is_gaussian: bool = True

    @abstractmethod
    def make(self, dtype: torch.dtype) -> OnlineGP:
        """The model under test, of two-dimensional inputs."""

    @abstractmethod
    def outcomes(self, shape: tuple[int, ...], rng: torch.Generator, dtype: torch.dtype) -> Tensor:
        """Outcomes that can be observed, with the outputs on a new last axis."""

    def draw(self, n: int, dtype: torch.dtype, *batch: int, seed: int = 0) -> tuple[Tensor, Tensor]:
        """Inputs and outcomes."""
        rng = torch.Generator().manual_seed(seed)
        X = uniform(rng, *batch, n, 2, dtype=dtype)
        return X, self.outcomes((*batch, n), rng, dtype)

    @both_dtypes
    @pytest.mark.parametrize("batch", BATCH_SHAPES)
    def test_posteriors_have_the_shapes_that_botorch_expects(self, batch: tuple[int, ...], dtype: torch.dtype) -> None:
        model = self.make(dtype)
        X, _ = self.draw(3, dtype, *batch)
        posterior: Any = model.posterior(X)
        expected = (*batch, 3, self.num_outputs)
        assert isinstance(posterior, GPyTorchPosterior)
        assert posterior.mean.shape == posterior.variance.shape == expected
        assert posterior.rsample(torch.Size([4])).shape == (4, *expected)
        assert posterior._extended_shape(torch.Size([4])) == (4, *expected)
        assert SobolQMCNormalSampler(torch.Size([5]))(posterior).shape == (5, *expected)
        assert posterior.distribution.mean.reshape(expected).dtype == dtype
        assert (posterior.dtype, posterior.device) == (dtype, X.device)
        assert (model.posterior(X, observation_noise=True).variance >= posterior.variance).all()

    @both_dtypes
    def test_moments_equal_those_of_the_distribution(self, dtype: torch.dtype) -> None:
        X, _ = self.draw(3, dtype, 2)
        for noise in (False, True):
            posterior: Any = self.make(dtype).posterior(X, observation_noise=noise)
            mean, variance = posterior.mean, posterior.variance
            size = rounding(dtype, scale=float(mean.abs().max() + variance.max()))
            assert_close(posterior.distribution.mean.reshape(mean.shape), mean, **size)
            assert_close(posterior.distribution.variance.reshape(mean.shape), variance, **size)

    def test_the_mean_does_not_pay_for_a_covariance(self) -> None:
        X, Y = self.draw(3, torch.float64)
        model = self.make(torch.float64)
        for each in (model, model.condition_on_observations(X, Y)):
            posterior = each.posterior(X)
            _ = posterior.mean
            assert isinstance(posterior, LatentPosterior)
            for output in posterior.outputs:
                assert not {"variance", "covariance"} & set(vars(output.terms[0].prediction))

    @both_dtypes
    def test_conditioning_on_nothing_changes_nothing(self, dtype: torch.dtype) -> None:
        model = self.make(dtype)
        X, Y = self.draw(4, dtype)
        after = model.condition_on_observations(X[:0], Y[:0])
        assert_same_posterior(after, model, X, **limits(model))

    @both_dtypes
    def test_conditioning_in_two_parts_equals_conditioning_at_once(self, dtype: torch.dtype) -> None:
        if not self.is_gaussian:
            pytest.skip("sites are found from the belief at hand, so the order matters")
        model = self.make(dtype)
        X, Y = self.draw(4, dtype)
        twice = model.condition_on_observations(X[:1], Y[:1]).condition_on_observations(X[1:], Y[1:])
        assert_same_posterior(twice, model.condition_on_observations(X, Y), X + 0.1, **limits(model))

    @both_dtypes
    def test_a_batched_call_equals_a_loop(self, dtype: torch.dtype) -> None:
        model = self.make(dtype)
        X, Y = self.draw(3, dtype, 4)
        batched = model.condition_on_observations(X, Y)
        assert batched.batch_shape == (4,)
        for i in range(4):
            alone = model.condition_on_observations(X[i], Y[i])
            # Single precision stops the iteration of the sites at 5e-3 standard deviations.
            loose = limits(model) if self.is_gaussian else approximation(2 * 5e-3, "iteration")
            assert_close(batched.posterior(X[i]).mean[i], alone.posterior(X[i]).mean, **loose)
            assert_close(batched.posterior(X[i]).variance[i], alone.posterior(X[i]).variance, **loose)

    @both_dtypes
    def test_a_fantasy_is_the_model_conditioned_on_a_noisy_draw(self, dtype: torch.dtype) -> None:
        model = self.make(dtype)
        X, _ = self.draw(2, dtype, 3)
        sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
        fantasies = model.fantasize(X, sampler)
        assert fantasies.batch_shape == (4, 3)
        clean, noisy = model.posterior(X), model.posterior(X, observation_noise=True)
        assert_same_posterior(
            fantasies,
            model.condition_on_observations(X, sampler(noisy), noise=self.noise_of(model, noisy.variance, clean)),
            X,
            **limits(model, scale=3.0),
        )
        W, _ = self.draw(2, dtype, seed=1)
        assert fantasies.posterior(W).mean.shape == (4, 3, 2, self.num_outputs)
        assert fantasies.posterior(W.expand(4, 3, 2, 2)).variance.shape == (4, 3, 2, self.num_outputs)

    def noise_of(self, model: OnlineGP, noisy_variance: Tensor, clean: Any) -> Tensor:
        """The noise that was added, in the units of the model's outcome transform."""
        added = noisy_variance - clean.variance
        if "outcome_transform" not in model._modules:
            return added
        return model.outcome_transform(clean.mean, added)[1]

    def test_fantasies_of_fantasies_have_all_axes(self) -> None:
        model = self.make(torch.float64)
        X, _ = self.draw(2, torch.float64, 3)
        first = model.fantasize(X, SobolQMCNormalSampler(torch.Size([4]), seed=0))
        W, _ = self.draw(1, torch.float64, 4, 3, seed=1)
        second = first.fantasize(W, SobolQMCNormalSampler(torch.Size([2]), seed=1))
        assert second.batch_shape == (2, 4, 3)
        assert second.posterior(W).mean.shape == (2, 4, 3, 1, self.num_outputs)
        assert (second.posterior(W).variance <= first.posterior(W).variance + limits(model)["atol"]).all()

    def test_gradients_reach_inputs_through_fantasies(self) -> None:
        model = self.make(torch.float64)
        X, _ = self.draw(2, torch.float64)
        W, _ = self.draw(2, torch.float64, seed=1)
        sampler = SobolQMCNormalSampler(torch.Size([3]), seed=0)

        def moments(X: Tensor, W: Tensor) -> tuple[Tensor, Tensor]:
            posterior = model.fantasize(X, sampler).posterior(W)
            return posterior.mean, posterior.variance

        assert torch.autograd.gradcheck(moments, (X.requires_grad_(True), W.requires_grad_(True)))

    def test_fantasies_at_no_inputs_only_add_axes(self) -> None:
        model = self.make(torch.float64)
        X, _ = self.draw(3, torch.float64, 2)
        after = model.fantasize(X[..., :0, :], SobolQMCNormalSampler(torch.Size([4])))
        assert after.posterior(X).mean.shape == (4, 2, 3, self.num_outputs)
        assert_close(after.posterior(X).mean[0], model.posterior(X).mean)

    @both_dtypes
    def test_drawn_outcomes_can_be_observed_and_repeat_with_the_seed(self, dtype: torch.dtype) -> None:
        model = self.make(dtype)
        X, _ = self.draw(2, dtype)
        first, second = (
            model.fantasize(X, SobolQMCNormalSampler(torch.Size([3]), seed=5), observations=True) for _ in range(2)
        )
        assert first.batch_shape == (3,)
        assert torch.isfinite(first.posterior(X).mean).all()
        assert torch.equal(first.posterior(X).mean, second.posterior(X).mean)

    @both_dtypes
    def test_absorbing_keeps_the_size(self, dtype: torch.dtype) -> None:
        model = self.make(dtype)
        X, Y = self.draw(5, dtype)
        after = model.absorb(X, Y)
        assert [gp.num_inducing for gp in sparse(after)] == [gp.num_inducing for gp in sparse(model)]
        assert after.absorb_info is not None
        assert len(after.absorb_info) == self.num_outputs
        again = after.absorb(X, Y).condition_on_observations(X, Y)
        assert torch.isfinite(again.posterior(X).mean).all()

    def test_the_original_is_untouched(self) -> None:
        model = self.make(torch.float64)
        X, Y = self.draw(3, torch.float64)
        before = model.posterior(X).mean.clone(), model.posterior(X).variance.clone()
        model.condition_on_observations(X, Y).fantasize(X, SobolQMCNormalSampler(torch.Size([2])))
        model.absorb(X, Y)
        assert model.train() is model
        assert model.eval() is model
        assert torch.equal(model.posterior(X).mean, before[0])
        assert torch.equal(model.posterior(X).variance, before[1])

    @both_dtypes
    def test_copies_and_pickles_predict_identically(self, dtype: torch.dtype) -> None:
        X, Y = self.draw(3, dtype)
        model = self.make(dtype).condition_on_observations(X, Y)
        twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        model.load_state_dict(model.state_dict())
        for twin in twins:
            assert torch.equal(twin.posterior(X).mean, model.posterior(X).mean)
            assert torch.equal(twin.posterior(X).variance, model.posterior(X).variance)

    def test_a_subset_of_outputs_predicts_as_the_whole(self) -> None:
        X, Y = self.draw(3, torch.float64)
        model = self.make(torch.float64)
        whole = model.posterior(X, observation_noise=True)
        for j in range(self.num_outputs):
            for part in (
                model.subset_output([j]).posterior(X, observation_noise=True),
                model.posterior(X, output_indices=[j - self.num_outputs], observation_noise=True),
            ):
                assert_close(part.mean, whole.mean[..., j : j + 1])
                assert_close(part.variance, whole.variance[..., j : j + 1])
            alone = model.subset_output([j]).condition_on_observations(X, Y[..., j : j + 1])
            together = model.condition_on_observations(X, Y)
            assert_close(alone.posterior(X).mean, together.posterior(X).mean[..., j : j + 1])


def sparse(model: OnlineGP) -> list[SparseGP]:
    """The GPs of a model that was not conditioned."""
    return [gp for gp in model.gps if isinstance(gp, SparseGP)]


def limits(model: OnlineGP, *, scale: float = 1.0) -> dict[str, Any]:
    """Tolerances of two ways to compute a posterior: the condition of the kernel matrices times the size of values."""
    processes = [gp.process if isinstance(gp, SparseGP) else gp.process.base for gp in model.gps]
    condition = max(float(torch.linalg.cond(process.factor.double()).max()) ** 2 for process in processes)
    size = max(float(process.prior.variance(process.inducing_points).max()) for process in processes)
    return rounding(processes[0].factor.dtype, condition=condition, scale=scale * max(1.0, size))


def uniform(rng: torch.Generator, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Uniform numbers that are the same in both dtypes."""
    return torch.rand(*shape, generator=rng, dtype=torch.float64).to(dtype)


def assert_same_posterior(first: OnlineGP, second: OnlineGP, X: Tensor, *, rtol: float, atol: float) -> None:
    """Assert that two models agree in mean and variance."""
    one, other = first.posterior(X), second.posterior(X)
    assert_close(one.mean, other.mean, rtol=rtol, atol=atol)
    assert_close(one.variance, other.variance, rtol=rtol, atol=atol)


def exact_pair(X: Tensor, Y: Tensor, *, noise_variance: float = 0.01) -> tuple[SingleTaskGP, OnlineGP]:
    """BoTorch's exact GP, and an `OnlineGP` with an inducing point at every input, which equals it but for jitter."""
    exact = SingleTaskGP(X, Y, outcome_transform=None)
    exact.likelihood.noise = noise_variance
    gps = []
    for j in range(Y.shape[-1]):
        kernel, mean = RBFKernel(ard_num_dims=X.shape[-1]).to(X), gpytorch.means.ConstantMean().to(X)
        kernel.lengthscale = exact.covar_module.lengthscale.detach().reshape(Y.shape[-1], 1, -1)[j]
        mean.initialize(constant=exact.mean_module.constant.detach().reshape(-1)[j])
        gp, _ = SparseGP.from_prior(kernel, X, mean=mean).absorb(
            X, Y[:, j], noise_variance=noise_variance, inducing="keep"
        )
        gps.append(gp)
    return exact.eval(), OnlineGP(gps, Gaussian(noise_variance))
