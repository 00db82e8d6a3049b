import pytest
import torch

import streamgp as sg
from streamgp.conditioning import SiteWindow
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Gaussian, Poisson
from streamgp.sites import SiteRule
from streamgp.testing.conditioning_laws import assert_same_prediction
from streamgp.testing.problems import random_sparse_gp
from streamgp.testing.tolerances import approximation

RULE = SiteRule(tolerance=1e-11)


def count_stream(rng, num_batches, size=4):
    X = torch.rand(num_batches, size, 2, generator=rng, dtype=torch.float64)
    return X, torch.poisson(torch.exp(2 * X[..., 0]), generator=rng)


def start(rng):
    problem = random_sparse_gp(rng)
    return sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points)


def run(window, X, y, **options):
    for batch in zip(X, y, strict=True):
        window, _ = window.absorb(*batch, **options)
    return window


def test_a_window_of_one_batch_is_plain_filtering(rng):
    gp, (X, y) = start(rng), count_stream(rng, 5)
    window = run(SiteWindow(gp, Poisson(), num_batches=1, sites=RULE), X, y)
    for batch in zip(X, y, strict=True):
        gp, _ = gp.absorb(*batch, likelihood=Poisson(), sites=RULE)
    assert_same_prediction(window.gp, gp, X[0], **approximation(1e-6, "iteration"))


def test_a_window_over_everything_is_the_batch_solution(rng):
    gp, (X, y) = start(rng), count_stream(rng, 4)
    window = run(SiteWindow(gp, Poisson(), num_batches=9, sites=RULE), X, y, inducing="keep")
    at_once, _ = gp.absorb(X.flatten(0, 1), y.flatten(), likelihood=Poisson(), sites=RULE, inducing="keep")
    assert_same_prediction(window.gp, at_once, X[0], **approximation(1e-6, "iteration"))


def test_revisiting_comes_closer_to_the_batch_solution(rng):
    gp, (X, y) = start(rng), count_stream(rng, 12, size=1)
    at_once, _ = gp.absorb(X.flatten(0, 1), y.flatten(), likelihood=Poisson(), sites=RULE, inducing="keep")
    grid = torch.rand(50, 2, generator=rng, dtype=torch.float64)
    distance = {
        n: (run(SiteWindow(gp, Poisson(), num_batches=n, sites=RULE), X, y, inducing="keep").gp.predict(grid).mean
            - at_once.predict(grid).mean).abs().max()
        for n in (1, 6)
    }  # fmt: skip
    assert distance[6] < distance[1]


def test_gaussian_sites_do_not_change_when_revisited(rng):
    gp, (X, y) = start(rng), count_stream(rng, 6)
    window = run(SiteWindow(gp, Gaussian(0.3), num_batches=3), X, y, inducing="keep")
    at_once, _ = gp.absorb(X.flatten(0, 1), y.flatten(), noise_variance=0.3, inducing="keep")
    assert_same_prediction(window.gp, at_once, X[0], **approximation(1e-7, "iteration"))


def test_the_size_stays_bounded_and_the_start_untouched(rng):
    gp, (X, y) = start(rng), count_stream(rng, 8)
    first = SiteWindow(gp, Poisson(), num_batches=2)
    last = run(first, X, y)
    assert len(last.batches) == 2
    assert last.gp.num_inducing == gp.num_inducing
    assert first.batches == ()


def test_a_window_of_nothing_is_refused(rng):
    with pytest.raises(ValueRangeError, match="num_batches must be a whole number of at least 1, but is 0"):
        SiteWindow(start(rng), Poisson(), num_batches=0)
