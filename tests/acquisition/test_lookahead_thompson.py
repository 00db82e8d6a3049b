import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel
from tests.support.problems import random_sparse_gp
from tests.support.sampling_laws import SamplingLaws
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import lookahead_thompson_sampling, thompson_sampling
from streamgp.acquisition.lookahead_thompson import LookaheadPaths, extend_paths, start_paths
from streamgp.acquisition.samplers import read_sampler
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Gaussian, Poisson
from streamgp.testing.tolerances import approximation

DTYPES = [torch.float32, torch.float64]
SAMPLING = ["joint", "paths"]


class TestLookaheadThompsonSampling(SamplingLaws):
    covers = "lookahead_thompson_sampling"

    def choose(self, model, candidates, *, q, **options):
        return lookahead_thompson_sampling(model, candidates, q=q, depth=2, num_paths=3, **options)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def uniform(rng, *shape, dtype=torch.float64):
    return torch.rand(*shape, generator=rng, dtype=dtype)


def sparse_model(rng, dtype=torch.float64):
    return sg.OnlineGP(random_sparse_gp(rng, dtype=dtype).gp, Gaussian(0.01))


def exact_model(rng, dtype=torch.float64):
    X = uniform(rng, 12, 2, dtype=dtype)
    return SingleTaskGP(X, torch.sin(6 * X.sum(-1, keepdim=True))).eval()


MODELS = {"sparse": sparse_model, "exact": exact_model}


def follow(model, sampling, points, num_paths, rng):
    """Follow many paths through sets of one candidate each, which leave them no choice."""
    sampler = read_sampler(model, sampling)
    first = sampler.sample(points[:0], points[:1], num_samples=num_paths, generator=rng).at_candidates
    paths = LookaheadPaths(points[:1], torch.zeros(num_paths, 1, dtype=torch.long), first)
    for point in points[1:]:
        paths = extend_paths(sampler, paths, point.unsqueeze(0), rng)
    return paths


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sampling"), [("sparse", "joint"), ("sparse", "paths"), ("exact", "joint")])
def test_the_values_along_a_path_have_the_joint_distribution_of_the_model(rng, name, sampling):
    model = MODELS[name](rng)
    points, s = uniform(rng, 4, 2), 4000
    paths = follow(model, sampling, points, s, rng)
    posterior = model.posterior(points)
    mean, covariance = posterior.mean.squeeze(-1).detach(), posterior.distribution.covariance_matrix.detach()
    centered = paths.values - mean
    variance = covariance.diagonal()
    assert (centered.mean(0).abs() < 5 * (variance / s).sqrt() + feature_error(model, sampling)).all()
    # The standard error of an entry of the empirical covariance of Gaussian values.
    error = ((variance.outer(variance) + covariance.square()) / s).sqrt()
    deviation = (centered.mT @ centered / s - covariance).abs()
    assert (deviation < 5 * error + feature_error(model, sampling)).all()


def feature_error(model, sampling):
    """Random features put the prior's covariance wrong by its size over the root of their number."""
    return 3 * float(model.gps[0].kernel.outputscale) / 1024**0.5 if sampling == "paths" else 0.0


@pytest.mark.parametrize("sampling", SAMPLING)
def test_a_path_that_comes_back_to_a_point_finds_its_value_there(rng, sampling):
    model = sparse_model(rng)
    sampler = read_sampler(model, sampling)
    points = uniform(rng, 3, 2)
    paths = follow(model, sampling, points, 5, rng)
    samples = sampler.sample(paths.points, paths.points, num_samples=5, generator=rng)
    # The draws meet a value up to the jitter of their covariance.
    assert_close(samples.given_own_values(paths.index, paths.values), paths.values, **approximation(5e-5, "jitter"))


@pytest.mark.parametrize("sampling", SAMPLING)
def test_depth_zero_is_plain_thompson_sampling(rng, sampling):
    model, candidates = sparse_model(rng), uniform(rng, 50, 2)
    options = {"q": 6, "sampling": sampling}
    ahead = lookahead_thompson_sampling(model, candidates, depth=0, generator=seeded(), **options)
    assert torch.equal(ahead, thompson_sampling(model, candidates, generator=seeded(), **options))


def test_paths_start_at_the_best_points_of_one_function(rng):
    model, candidates = sparse_model(rng), uniform(rng, 30, 2)
    sample = model.gps[0].sample(candidates, 1, generator=seeded()).squeeze(0)
    paths = start_paths(read_sampler(model, "joint"), candidates, 4, seeded())
    order = sample.argsort(descending=True)[:4]
    assert torch.equal(paths.points, candidates[order])
    assert_close(paths.values.squeeze(-1), sample[order])


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MODELS)
def test_points_are_distinct_candidates_and_repeat_with_their_seed(rng, name, dtype):
    model, candidates = MODELS[name](rng, dtype), uniform(rng, 40, 2, dtype=dtype)
    first, second = (
        lookahead_thompson_sampling(model, candidates, q=12, depth=3, num_paths=5, generator=seeded()) for _ in range(2)
    )
    assert torch.equal(first, second)
    assert first.dtype == dtype
    assert len(torch.unique(first, dim=0)) == 12
    assert (first.unsqueeze(1) == candidates).all(-1).any(1).all()


def test_a_path_visits_no_point_of_a_fixed_set_twice(rng):
    model, candidates = sparse_model(rng), uniform(rng, 6, 2)
    sampler = read_sampler(model, "joint")
    paths = start_paths(sampler, candidates, 6, rng)
    for _ in range(5):
        paths = extend_paths(sampler, paths, candidates, rng)
    for path in paths.points[paths.index]:
        assert len(torch.unique(path, dim=0)) == 6
    points, values = paths.union()
    assert len(points) == len(values) == 6
    # The value kept is that of the path that came first, and all of them started at one point each.
    started = paths.points[paths.index[:, 0]]
    position = (points.unsqueeze(1) == started).all(-1).long().argmax(-1)
    assert torch.equal(values, paths.values[position, 0])


def test_fresh_candidates_are_asked_for_at_each_depth(rng):
    model, asked = sparse_model(rng), []

    def draw_candidates(num):
        asked.append(num)
        return uniform(rng, num, 2)

    lookahead_thompson_sampling(model, draw_candidates, q=3, depth=4, num_paths=2, num_candidates=60, generator=rng)
    assert asked == [15, 15, 15, 15, 60]


@pytest.mark.slow
def test_looking_ahead_draws_from_the_conditioned_model(rng):
    """At candidates that know nothing of each other, the best of one function beats a second one as often as not."""
    n, num_runs = 10, 40
    kernel = MaternKernel(2.5).double()
    kernel.lengthscale = 1e-3
    candidates = uniform(rng, n, 2)
    model = sg.OnlineGP(sg.SparseGP.from_prior(kernel, candidates[:2] + 0.5), Gaussian(1e-8))
    num_kept = 0
    for seed in range(num_runs):
        started = start_paths(read_sampler(model, "joint"), candidates, 1, seeded(seed)).points
        ahead = lookahead_thompson_sampling(model, candidates, depth=1, num_paths=1, generator=seeded(seed))
        num_kept += int(torch.equal(started, ahead))
    # The largest of n + (n - 1) independent values is one of the first n; without conditioning it would be one in n.
    expected = n / (2 * n - 1)
    assert abs(num_kept / num_runs - expected) < 4 * (expected * (1 - expected) / num_runs) ** 0.5


@pytest.mark.slow
def test_counts_are_looked_ahead_at_through_their_latent_function(rng):
    X = uniform(rng, 30, 2)
    y = torch.poisson(torch.exp(3 * X[:, 0]), generator=rng)
    model = sg.OnlineGP.fit(X, y.unsqueeze(-1), likelihood=Poisson(), num_inducing=15)
    chosen = lookahead_thompson_sampling(model, uniform(rng, 200, 2), q=4, generator=rng)
    assert chosen.shape == (4, 2)
    assert chosen[:, 0].mean() > 0.7


@pytest.mark.slow
def test_transforms_of_inputs_are_applied_and_points_come_back_in_the_users_units(rng):
    X = 100 * uniform(rng, 40, 2)
    Y = -(X[:, :1] - 70).square()
    model = sg.OnlineGP.fit(X, Y, num_inducing=20)
    chosen = lookahead_thompson_sampling(model, 100 * uniform(rng, 300, 2), q=3, generator=rng)
    assert ((chosen[:, 0] - 70).abs() < 20).all()


def test_counts_of_paths_and_depths_are_checked(rng):
    model, candidates = sparse_model(rng), torch.rand(20, 2).double()
    for name, value in (("q", 0), ("depth", -1), ("num_paths", 0)):
        with pytest.raises(ValueRangeError, match=f"{name} must be a whole number"):
            lookahead_thompson_sampling(model, candidates, **{name: value})
