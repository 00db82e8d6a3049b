"""What an observation would tell of a region, against quadrature, sampling and the closed forms of each other."""

import itertools

import pytest
import torch
from scipy.stats import multivariate_normal
from torch.testing import assert_close

from streamgp.acquisition.lookahead import Lookahead, bivariate_excess
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, NegativeBinomial, Poisson, StudentT
from streamgp.testing.tolerances import judgement, rounding, tolerance

F64 = torch.float64


def random_lookahead(rng, likelihood, *, c=4, t=6, edges=(0.3,), num_pending=0):
    """A joint belief about candidates and targets, with pending observations that have been taken into account."""
    root = torch.randn(c + t, c + t, generator=rng, dtype=F64) / (c + t) ** 0.5
    covariance = root @ root.mT + 0.05 * torch.eye(c + t, dtype=F64)
    mean = torch.randn(c + t, generator=rng, dtype=F64)
    before = covariance.diagonal()[c:].clone()
    for j in range(num_pending):  # members of the set itself, with noise .3
        column = covariance[:, j]
        covariance = covariance - torch.outer(column, column) / (covariance[j, j] + 0.3)
    after = covariance.diagonal()[c:]
    return Lookahead(
        likelihood=likelihood,
        mean=mean[:c],
        variance=covariance.diagonal()[:c],
        cross=covariance[:c, c:],
        target_mean=mean[c:],
        target_variance=after,
        weights=0.5 + torch.rand(t, generator=rng, dtype=F64),
        edges=edges,
        pending_variance=before - after,
    )


@pytest.mark.parametrize("rho", [-0.95, -0.5, 0.0, 1e-3, 0.7, 0.95])
def test_the_excess_is_that_of_the_bivariate_normal_distribution(rho):
    for h, k in itertools.product((-2.5, -0.4, 0.0, 1.1), repeat=2):
        joint = multivariate_normal([0.0, 0.0], [[1.0, rho], [rho, 1.0]]).cdf([h, k])
        product = torch.special.ndtr(torch.tensor(h, dtype=F64)) * torch.special.ndtr(torch.tensor(k, dtype=F64))
        found = bivariate_excess(*torch.tensor([h, k, rho], dtype=F64))
        assert_close(found, joint - product, **judgement(absolute=2e-8))


def test_gradients_of_the_excess_are_right(rng):
    h, k = (torch.randn(5, generator=rng, dtype=F64).requires_grad_() for _ in range(2))
    rho = (1.8 * torch.rand(5, generator=rng, dtype=F64) - 0.9).requires_grad_()
    assert torch.autograd.gradcheck(bivariate_excess, (h, k, rho))
    wide = torch.randn(3, 1, generator=rng, dtype=F64).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b, c: bivariate_excess(a, b, c * torch.ones(3, 5)), (wide, k, rho))


def brute_force_drop(one, outcomes, density):
    """The expected drop of sum w P (1 - P), by a fine grid over the candidate's latent value.

    Args:
        one: Candidates and targets.
        outcomes: Possible outcomes, with the measure of each.
        density: Of an outcome given the latent value.
    """
    z = torch.linspace(-9.0, 9.0, 4001, dtype=F64)
    mass = torch.softmax(-0.5 * z.square(), 0)
    found = []
    for m, v, cross in zip(one.mean, one.variance, one.cross, strict=True):
        f = m + v.sqrt() * z
        rest = (one.target_variance - cross.square() / v).sqrt()
        given = one.target_mean + (cross / v.sqrt()) * z.unsqueeze(-1)
        below = [torch.special.ndtr((edge - given) / rest) for edge in one.edges]
        inside = below[0] if len(below) == 1 else below[1] - below[0]
        before, drop = mass @ inside, 0.0
        for y, measure in outcomes:
            likely = mass * density(f, y)
            after = (likely @ inside) / likely.sum()
            drop = drop + measure * likely.sum() * (before * (1 - before) - after * (1 - after))
        found.append(one.weights @ drop)
    return torch.stack(found)


@pytest.mark.parametrize("edges", [(0.3,), (-0.2, 0.9)])
@pytest.mark.parametrize("link", ["probit", "logit"])
def test_the_drop_by_a_yes_or_no_is_that_of_brute_force(rng, edges, link):
    likelihood = Bernoulli(link)
    one = random_lookahead(rng, likelihood, edges=edges)

    def density(f, y):
        return likelihood.log_density(f, torch.tensor(y, dtype=F64)).exp()

    expected = brute_force_drop(one, [(0.0, 1.0), (1.0, 1.0)], density)
    assert_close(one.variance_drop(), expected, **judgement(absolute=1e-6))


@pytest.mark.parametrize("edges", [(0.3,), (-0.2, 0.9)])
def test_the_drop_by_a_gaussian_value_is_that_of_brute_force(rng, edges):
    one = random_lookahead(rng, Gaussian(0.3), edges=edges)
    y = torch.linspace(-9.0, 9.0, 1201, dtype=F64)

    def density(f, y):
        return torch.exp(-0.5 * (y - f).square() / 0.3) / (2.0 * torch.pi * 0.3) ** 0.5

    expected = brute_force_drop(one, [(value, y[1] - y[0]) for value in y], density)
    assert_close(one.variance_drop(), expected, **judgement(absolute=1e-6))


@pytest.mark.parametrize("likelihood", [Poisson(), Binomial(6), NegativeBinomial(2.0)], ids=lambda one: one.name)
def test_the_drop_by_a_count_is_that_of_brute_force(rng, likelihood):
    one = random_lookahead(rng, likelihood)
    most = 6 if isinstance(likelihood, Binomial) else 400

    def density(f, y):
        return likelihood.log_density(f, torch.tensor(float(y), dtype=F64)).exp()

    expected = brute_force_drop(one, [(y, 1.0) for y in range(most + 1)], density)
    assert_close(one.variance_drop(), expected, **judgement(absolute=1e-4, relative=0.04))


def test_a_student_t_value_tells_less_than_a_gaussian_one_of_the_same_scale(rng):
    one = random_lookahead(rng, Gaussian(0.3))
    robust = random_lookahead(torch.Generator().manual_seed(0), StudentT(4.0, 0.3**0.5))
    same = Lookahead(**{**fields(one), "likelihood": robust.likelihood})
    drop, robust_drop = one.variance_drop(), same.variance_drop()
    assert (robust_drop > 0.0).all()
    assert (robust_drop < drop * 1.02).all()


@pytest.mark.parametrize("likelihood", [Bernoulli("probit"), Bernoulli("logit"), Gaussian(0.3), Poisson()])
def test_probabilities_are_right_on_average_over_outcomes(rng, likelihood):
    one = random_lookahead(rng, likelihood)
    probability, excess = one.scenarios
    assert_close(probability.sum(-1), torch.ones_like(one.mean), **tolerance(F64, scale=10.0))
    assert_close(excess.sum(0), torch.zeros_like(one.cross), **tolerance(F64, scale=10.0))


def test_with_pending_values_the_drop_is_what_both_together_have_beyond_the_pending_one(rng):
    """Gaussian: drop(pending) + drop(x | pending) = drop of both, whatever comes first."""
    root = torch.randn(3, 3, generator=rng, dtype=F64)
    K, mean, noise = root @ root.mT + 0.1 * torch.eye(3, dtype=F64), torch.randn(3, generator=rng, dtype=F64), 0.3

    def drop(candidate, pending):
        after = K
        for j in pending:
            after = after - torch.outer(after[:, j], after[:, j]) / (after[j, j] + noise)
        return Lookahead(
            Gaussian(noise),
            mean[candidate : candidate + 1],
            after[candidate, candidate].reshape(1),
            after[candidate, 2].reshape(1, 1),
            mean[2:],
            after[2, 2].reshape(1),
            torch.ones(1, dtype=F64),
            (0.3,),
            (K[2, 2] - after[2, 2]).reshape(1),
        ).variance_drop()

    assert_close(drop(0, []) + drop(1, [0]), drop(1, []) + drop(0, [1]), **judgement(absolute=1e-8))


@pytest.mark.parametrize("likelihood", [Bernoulli("probit"), Bernoulli("logit"), Gaussian(0.3), Poisson()])
@pytest.mark.parametrize("name", ["variance_drop", "information", "volume_change", "error_drop"])
def test_candidates_at_once_equal_one_by_one_and_tell_something(rng, likelihood, name):
    one = random_lookahead(rng, likelihood)
    together = getattr(one, name)()
    assert (together >= -1e-9).all()
    for i in range(len(one.mean)):
        part = {"mean": one.mean[i : i + 1], "variance": one.variance[i : i + 1], "cross": one.cross[i : i + 1]}
        alone = getattr(Lookahead(**{**fields(one), **part}), name)()
        assert_close(alone, together[i : i + 1], **tolerance(F64, scale=10.0))


def fields(one):
    return {name: getattr(one, name) for name in Lookahead.__dataclass_fields__}


@pytest.mark.parametrize("name", ["variance_drop", "information", "volume_change", "error_drop"])
@pytest.mark.parametrize("likelihood", [Bernoulli("probit"), Bernoulli("logit"), Gaussian(0.3)])
def test_gradients_reach_the_moments_of_candidates(rng, likelihood, name):
    one = random_lookahead(rng, likelihood, c=2, t=3)
    given = (one.mean, one.variance, one.cross)
    leaves = [x.detach().clone().requires_grad_() for x in given]

    def value(mean, variance, cross):
        moved = Lookahead(**{**fields(one), "mean": mean, "variance": variance, "cross": cross})
        return getattr(moved, name)()

    assert torch.autograd.gradcheck(value, leaves)


def test_an_observation_that_is_independent_of_all_targets_tells_nothing(rng):
    one = random_lookahead(rng, Bernoulli("probit"))
    alone = Lookahead(**{**fields(one), "cross": torch.zeros_like(one.cross)})
    for name in ("variance_drop", "information", "volume_change", "error_drop"):
        assert_close(getattr(alone, name)(), torch.zeros_like(one.mean), **rounding(F64))
