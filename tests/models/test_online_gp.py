"""The model: its laws for a Gaussian output, mixed likelihoods and transforms, and what users get wrong."""

import pytest
import torch
from botorch.models import ModelListGP
from botorch.models.model import ModelList
from botorch.models.transforms import Normalize, Standardize
from botorch.sampling import ListSampler, SobolQMCNormalSampler
from tests.support.model_laws import ModelLaws, assert_same_posterior, exact_pair, uniform
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import DTypeError, OptionError, ShapeError, SupportError, UnsupportedError
from streamgp.likelihoods import Bernoulli, Gaussian, Poisson
from streamgp.testing.tolerances import approximation, tolerance

FLOAT64 = torch.float64


def sparse_gp(seed, dtype=FLOAT64):
    return random_sparse_gp(torch.Generator().manual_seed(seed), dtype=dtype).gp


def mixed(dtype=FLOAT64, **options):
    """A Poisson objective, a Gaussian constraint, and a Bernoulli feasibility."""
    gps = [sparse_gp(seed, dtype) for seed in range(3)]
    return sg.OnlineGP(gps, [Poisson(), Gaussian(0.1), Bernoulli()], **options)


class TestGaussian(ModelLaws):
    def make(self, dtype):
        return sg.OnlineGP(sparse_gp(0, dtype), Gaussian(0.1))

    def outcomes(self, shape, rng, dtype):
        return torch.randn(*shape, 1, generator=rng, dtype=FLOAT64).to(dtype)


class TestMixed(ModelLaws):
    num_outputs = 3
    is_gaussian = False

    def make(self, dtype):
        return mixed(dtype)

    def outcomes(self, shape, rng, dtype):
        counts = torch.randint(0, 4, shape, generator=rng).to(dtype)
        classes = torch.randint(0, 2, shape, generator=rng).to(dtype)
        return torch.stack([counts, torch.randn(shape, generator=rng, dtype=FLOAT64).to(dtype), classes], dim=-1)


class TestTransformed(ModelLaws):
    num_outputs = 2

    def make(self, dtype):
        rng = torch.Generator().manual_seed(9)
        into = Normalize(2, bounds=torch.tensor([[-1.0, 0.0], [2.0, 3.0]], dtype=dtype))
        out = Standardize(2)
        out(5.0 + 3.0 * uniform(rng, 6, 2, dtype=dtype))
        gps = [sparse_gp(seed, dtype) for seed in range(2)]
        return sg.OnlineGP(gps, Gaussian(0.1), input_transform=into, outcome_transform=out)

    def outcomes(self, shape, rng, dtype):
        return 6.0 + torch.randn(*shape, 2, generator=rng, dtype=FLOAT64).to(dtype)


class TestConditioned(ModelLaws):
    def make(self, dtype):
        gp = sparse_gp(0, dtype)
        Z = gp.inducing_points
        return sg.OnlineGP(gp.condition(Z[:2], Z[:2, 0], noise_variance=0.1), Gaussian(0.1))

    def outcomes(self, shape, rng, dtype):
        return torch.randn(*shape, 1, generator=rng, dtype=FLOAT64).to(dtype)

    @pytest.mark.skip(reason="a conditioned GP grows")
    def test_absorbing_keeps_the_size(self):
        pass

    def test_the_original_is_untouched(self):
        model = self.make(FLOAT64)
        X, Y = self.draw(3, FLOAT64)
        before = model.posterior(X).mean.clone()
        model.condition_on_observations(X, Y)
        assert torch.equal(model.posterior(X).mean, before)
        with pytest.raises(UnsupportedError, match="conditioned"):
            model.absorb(X, Y)


def test_conditioning_and_absorbing_equal_those_of_each_gp(rng):
    model = mixed()
    X = uniform(rng, 4, 2)
    Y = torch.tensor([[0.0, 0.1, 0.0], [2.0, -0.3, 1.0], [1.0, 0.4, 1.0], [3.0, 0.0, 0.0]], dtype=FLOAT64)
    W = uniform(rng, 5, 2)
    how = [{"likelihood": Poisson()}, {"noise_variance": 0.1}, {"likelihood": Bernoulli()}]
    conditioned, absorbed = model.condition_on_observations(X, Y).posterior(W), model.absorb(X, Y).posterior(W)
    for j, gp in enumerate(model.gps):
        expected = gp.condition(X, Y[:, j], **how[j]).predict(W)
        assert_close(conditioned.mean[:, j], expected.mean, **tolerance(FLOAT64))
        assert_close(conditioned.variance[:, j], expected.variance, **tolerance(FLOAT64))
        expected = gp.absorb(X, Y[:, j], **how[j])[0].predict(W)
        assert_close(absorbed.mean[:, j], expected.mean, **tolerance(FLOAT64))


@pytest.mark.parametrize("container", [ModelList, ModelListGP])
def test_lists_of_models_predict_and_fantasize_as_the_native_model(rng, container):
    model = mixed()
    parts = container(*(model.subset_output([j]) for j in range(3)))
    X, W = uniform(rng, 2, 3, 2), uniform(rng, 4, 2)
    assert_close(parts.posterior(X).mean, model.posterior(X).mean)
    assert_close(parts.posterior(X).variance, model.posterior(X).variance)
    sampler = ListSampler(*(SobolQMCNormalSampler(torch.Size([4]), seed=j) for j in range(3)))
    assert_close(parts.fantasize(X, sampler).posterior(W).mean, model.fantasize(X, sampler).posterior(W).mean)


def test_a_list_of_gps_can_be_conditioned_by_gpytorch_names(rng):
    model = sg.OnlineGP(sparse_gp(0), Gaussian(0.1))
    X, Y = uniform(rng, 3, 2), uniform(rng, 3, 1)
    listed = ModelListGP(model).condition_on_observations([X], Y)
    assert_close(listed.posterior(X).mean, model.condition_on_observations(X, Y).posterior(X).mean)


@pytest.mark.filterwarnings("ignore:Data .*is not standardized")
@pytest.mark.parametrize("o", [1, 2])
def test_with_inducing_points_at_all_inputs_it_equals_the_exact_gp(rng, o):
    X, Y, W = uniform(rng, 10, 2), uniform(rng, 10, o), uniform(rng, 2, 3, 2)
    exact, online = exact_pair(X, Y)
    for noise in (False, True, 0.3 * torch.ones(2, 3, o, dtype=FLOAT64)):
        expected, posterior = exact.posterior(W, observation_noise=noise), online.posterior(W, observation_noise=noise)
        assert_close(posterior.mean, expected.mean, **approximation(1e-5, "jitter", scale=0.1))
        assert_close(posterior.variance, expected.variance, **approximation(1e-4, "jitter", scale=0.01))
        covariance, wanted = (p.distribution.covariance_matrix for p in (posterior, expected))
        assert_close(covariance, wanted, **approximation(1e-4, "jitter", scale=0.01))
    samplers = [SobolQMCNormalSampler(torch.Size([4]), seed=1) for _ in range(2)]
    before, after = (m.fantasize(W, s).posterior(W).mean for m, s in zip((exact, online), samplers, strict=True))
    assert_close(after, before, **approximation(1e-4, "jitter", scale=0.1))


def test_noise_may_be_given_for_each_observation(rng):
    model = sg.OnlineGP(sparse_gp(0))
    X, Y, noise = uniform(rng, 3, 2), uniform(rng, 5, 3, 1), 0.1 + uniform(rng, 3, 1)
    expected = model.gps[0].condition(X, Y.squeeze(-1), noise_variance=noise.squeeze(-1)).predict(X)
    assert_close(model.condition_on_observations(X, Y, noise=noise).posterior(X).mean.squeeze(-1), expected.mean)
    fantasies = model.fantasize(X, SobolQMCNormalSampler(torch.Size([4])), observation_noise=noise)
    assert fantasies.posterior(X).mean.shape == (4, 3, 1)
    known = sg.OnlineGP(sparse_gp(0), Gaussian(noise.squeeze(-1)))
    shared = model.condition_on_observations(X, Y, noise=noise.mean().expand(3, 1))
    assert_same_posterior(known.condition_on_observations(X, Y), shared, X, **tolerance(FLOAT64))


@pytest.mark.parametrize("shape", [(3, 3, 1), (2, 3, 3, 1)])
def test_noise_of_as_many_batches_as_observations_is_not_taken_for_a_matrix(rng, shape):
    model = sg.OnlineGP(sparse_gp(0))
    X, Y, noise = uniform(rng, 3, 2), uniform(rng, *shape), 0.1 + uniform(rng, *shape)
    many = model.condition_on_observations(X, Y, noise=noise).posterior(X)
    batched = model.condition_on_observations(X.expand(3, 3, 2), Y, noise=noise).posterior(X)
    for i in range(3):
        alone = model.condition_on_observations(X, Y[..., i, :, :], noise=noise[..., i, :, :]).posterior(X)
        for joint in (many, batched):
            assert_close(joint.mean[..., i, :, :], alone.mean, **tolerance(FLOAT64))
            assert_close(joint.variance[..., i, :, :], alone.variance, **tolerance(FLOAT64))


def test_a_batch_of_gps_is_a_batch_model(rng):
    problem = random_sparse_gp(rng, batch_shape=(3,))
    model = sg.OnlineGP(problem.gp, Gaussian(0.1))
    X, Y = uniform(rng, 4, 2), uniform(rng, 4, 1)
    after = model.condition_on_observations(X, Y)
    assert model.batch_shape == after.batch_shape == (3,)
    for i in range(3):
        alone = sg.OnlineGP(problem.member((i,)).gp, Gaussian(0.1)).condition_on_observations(X, Y)
        assert_close(after.posterior(X).mean[i], alone.posterior(X).mean, **tolerance(FLOAT64))


def test_outputs_are_observed_where_the_mask_says(rng):
    model = mixed().subset_output([0, 1])
    X, W = uniform(rng, 2, 2), uniform(rng, 3, 2)
    sampler = ListSampler(*(SobolQMCNormalSampler(torch.Size([4]), seed=j) for j in range(2)))
    mask = torch.tensor([[True, False], [False, False]])
    posterior = model.fantasize(X, sampler, evaluation_mask=mask).posterior(W)
    assert posterior.mean.shape == (4, 3, 2)
    assert_close(posterior.mean[..., 1], model.posterior(W).mean[..., 1].expand(4, 3))
    assert (posterior.variance[..., 0] < model.posterior(W).variance[..., 0]).all()


X, Y = torch.rand(3, 2, dtype=FLOAT64), torch.rand(3, 1, dtype=FLOAT64)
SAMPLER = SobolQMCNormalSampler(torch.Size([2]))
NORMAL, COUNTS = sg.OnlineGP(sparse_gp(0), Gaussian(0.1)), sg.OnlineGP(sparse_gp(0), Poisson())
LATENT = sg.OnlineGP(sparse_gp(0))
BAD = {
    "a negative count": (lambda: COUNTS.condition_on_observations(X, -Y.round() - 1), SupportError, "whole numbers"),
    "half a count": (lambda: COUNTS.absorb(X, Y.round() + 0.5), SupportError, "Poisson targets must be whole"),
    "no output axis": (
        lambda: NORMAL.condition_on_observations(X, Y.squeeze(-1)),
        ShapeError,
        r"Y must have shape \(..., n, 1\).*Add the output axis with Y.unsqueeze\(-1\)",
    ),
    "two columns for one output": (lambda: NORMAL.absorb(X, Y.expand(3, 2)), ShapeError, r"Y must have shape"),
    "rows that differ": (lambda: NORMAL.condition_on_observations(X, Y[:2]), ShapeError, "one value for each row"),
    "inputs of another dimension": (lambda: NORMAL.posterior(X[:, :1]), ShapeError, "X must have 2 columns"),
    "inputs without rows": (lambda: NORMAL.posterior(X[0]), ShapeError, "For a single input use X.reshape"),
    "inputs of another dtype": (lambda: NORMAL.posterior(X.float()), DTypeError, "X is float32, but the model"),
    "an output too far": (lambda: NORMAL.posterior(X, output_indices=[1]), OptionError, "from -1 to 0, as the model"),
    "no outputs": (lambda: NORMAL.subset_output([]), OptionError, "at least one, but are"),
    "no likelihood": (lambda: LATENT.condition_on_observations(X, Y), OptionError, "Output 0 has no likelihood"),
    "no noise": (lambda: LATENT.posterior(X, observation_noise=True), OptionError, "made without a likelihood"),
    "no noise in fantasies": (lambda: LATENT.fantasize(X, SAMPLER), OptionError, "made without a likelihood"),
    "no outcomes to draw": (
        lambda: LATENT.fantasize(X, SAMPLER, observations=True),
        OptionError,
        "draws outcomes from the likelihood, but an output has none",
    ),
    "noise and outcomes": (
        lambda: NORMAL.fantasize(X, SAMPLER, observation_noise=Y, observations=True),
        OptionError,
        "Both observations=True and observation_noise",
    ),
    "noise of a wrong shape": (
        lambda: NORMAL.posterior(X, observation_noise=torch.ones(3, 2, dtype=FLOAT64)),
        ShapeError,
        "one column for each of the 1 outputs",
    ),
    "too many samplers": (
        lambda: NORMAL.fantasize(X, ListSampler(SAMPLER, SAMPLER)),
        OptionError,
        "one sampler for each of the 1 outputs, but has 2",
    ),
    "a mask of a wrong shape": (
        lambda: NORMAL.fantasize(X, ListSampler(SAMPLER), evaluation_mask=torch.ones(2, 1, dtype=torch.bool)),
        ShapeError,
        r"evaluation_mask must have shape \(3, 1\)",
    ),
    "a mask without a list": (
        lambda: NORMAL.fantasize(X, SAMPLER, evaluation_mask=torch.ones(3, 1, dtype=torch.bool)),
        OptionError,
        "Pass a ListSampler with one sampler for each output",
    ),
    "too few likelihoods": (
        lambda: sg.OnlineGP([sparse_gp(0), sparse_gp(1)], [Gaussian()]),
        OptionError,
        "one for each of the 2, but there are 1",
    ),
    "no GPs": (lambda: sg.OnlineGP([], Gaussian()), OptionError, "at least one GP, but is empty"),
    "GPs that differ": (
        lambda: sg.OnlineGP([sparse_gp(0), sparse_gp(1, torch.float32)], Gaussian()),
        ShapeError,
        "All GPs must share input dimension, dtype and device",
    ),
    "an unknown scale": (lambda: NORMAL.on_scale("log"), OptionError, "scale must be one of 'latent', 'response'"),
    "another dtype": (lambda: NORMAL.to(torch.float32), UnsupportedError, "a frozen value and cannot be moved"),
    "comparisons": (
        lambda: sg.OnlineGP(sparse_gp(0), sg.likelihoods.Preference()).fantasize(X, SAMPLER),
        UnsupportedError,
        "looks at 2 inputs, so there is none at single inputs",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_users_get_wrong_is_said_in_a_sentence(case):
    call, error, sentence = BAD[case]
    with pytest.raises(error, match=sentence):
        call()


def test_models_of_comparisons_are_conditioned_on_pairs(rng):
    likelihood = sg.likelihoods.Preference()
    model = sg.OnlineGP(sparse_gp(0), likelihood)
    pairs, choices = uniform(rng, 4, 2, 2), torch.ones(4, 1, dtype=FLOAT64)
    for after, gp in (
        (
            model.condition_on_observations(pairs, choices),
            model.gps[0].condition(pairs, choices[:, 0], likelihood=likelihood),
        ),
        (model.absorb(pairs, choices), model.gps[0].absorb(pairs, choices[:, 0], likelihood=likelihood)[0]),
    ):
        assert_close(after.posterior(pairs).mean.squeeze(-1), gp.predict(pairs).mean)


def test_arrays_lists_and_names_do_as_tensors_and_objects(rng):
    model = sg.OnlineGP([sparse_gp(0), sparse_gp(1)], ["poisson", Gaussian(0.1)])
    assert isinstance(model.likelihoods[0], Poisson)
    X, Y = uniform(rng, 3, 2), torch.tensor([[2.0, 0.3], [0.0, 0.1], [1.0, -0.2]], dtype=FLOAT64)
    expected = model.condition_on_observations(X, Y).posterior(X).mean
    assert_close(model.condition_on_observations(X.numpy(), Y.tolist()).posterior(X.tolist()).mean, expected)
    assert_close(model.absorb(X.tolist(), Y.numpy()).posterior(X).mean, model.absorb(X, Y).posterior(X).mean)


def test_a_model_is_fitted_to_arrays_and_by_the_name_of_its_likelihood(rng):
    X, counts = uniform(rng, 8, 1), torch.arange(8.0, dtype=FLOAT64).unsqueeze(-1)
    options = {"num_inducing": 3, "max_iterations": 2}
    fitted = sg.OnlineGP.fit(X.numpy(), counts.numpy(), likelihood="poisson", **options)
    same = sg.OnlineGP.fit(X, counts, likelihood=Poisson(), **options)
    assert_close(fitted.posterior(X).mean, same.posterior(X).mean)


def test_kernel_and_mean_are_where_botorch_has_them(rng):
    gps = [sparse_gp(0), sparse_gp(1)]
    one, both = sg.OnlineGP(gps[0], Gaussian(0.1)), sg.OnlineGP(gps, Gaussian(0.1))
    assert one.covar_module is gps[0].kernel
    assert one.mean_module is gps[0].mean
    assert list(both.covar_module) == [gp.kernel for gp in gps]
    after = one.condition_on_observations(uniform(rng, 1, 2), torch.ones(1, 1, dtype=FLOAT64))
    assert after.covar_module is gps[0].kernel
