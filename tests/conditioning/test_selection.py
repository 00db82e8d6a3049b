import copy
from dataclasses import replace

import pytest
import torch
from gpytorch.kernels import RBFKernel
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from tests.support.problems import random_observations, random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.conditioning.selection import choose_inducing_points, derive_information, site_information
from streamgp.testing.tolerances import rounding


def test_points_are_chosen_among_old_ones_and_inputs_without_repetition(rng):
    gp = random_sparse_gp(rng).gp
    new = random_observations(rng, num_observations=9)
    chosen = choose_inducing_points(gp.process, new.read_for(gp), num_inducing=8, prior=gp.process.prior)
    candidates = torch.cat([gp.inducing_points, new.inputs])
    assert (chosen.unsqueeze(1) == candidates).all(-1).any(-1).all()
    assert len(chosen.unique(dim=0)) == 8


def test_old_points_that_are_retained_at_any_price_are_chosen_again(rng):
    gp = random_sparse_gp(rng).gp
    new = random_observations(rng, num_observations=2)
    assert (
        choose_inducing_points(gp.process, new.read_for(gp), num_inducing=6, prior=gp.process.prior, retention=1e12)
        is None
    )


def test_the_information_is_the_diagonal_of_the_site(rng):
    gp = random_sparse_gp(rng).gp
    L = gp.process.factor
    S, K = L @ gp.whitened_covariance @ L.T, L @ L.T
    condition = torch.linalg.cond(S).item()
    scale = S.inverse().abs().max().item()
    expected = (S.inverse() - K.inverse()).diagonal()
    assert_close(site_information(gp.process), expected, **rounding(L.dtype, condition=condition, scale=scale))


def informed(process):
    """A belief that carries its information along, as after an exchange of points."""
    return sg.SparseGP(replace(process, information=torch.zeros_like(process.whitened_mean)))


def absorb(gp, new):
    return gp.absorb(new.inputs, new.targets, noise_variance=new.noise_variance, inducing="keep")[0]


# Steps that keep the points, from a belief that has learned the first observations.
STEPS = {
    "one": lambda gp, prior, first, second: absorb(gp, second.part(slice(0, 1))),
    "block": lambda gp, prior, first, second: absorb(gp, second),
    "forget": lambda gp, prior, first, second: gp.forget(0.3),
    "merge": lambda gp, prior, first, second: sg.merge([gp, absorb(prior, second), absorb(prior, first)]),
    "unlearn": lambda gp, prior, first, second: gp.unlearn(
        first.inputs[..., :3, :], first.targets[..., :3], noise_variance=first.noise_variance[..., :3]
    )[0],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("step", STEPS)
def test_the_information_that_is_carried_along_is_that_of_the_belief(rng, step, batch_shape, dtype):
    problem = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype)
    prior = sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean)
    prior = informed(prior.process)
    first, second = (random_observations(rng, num_observations=n, batch_shape=batch_shape, dtype=dtype) for n in (5, 8))
    process = STEPS[step](absorb(prior, first), prior, first, second).process
    assert (process.information is None) == (step == "unlearn")
    derived = derive_information(process.whitened_root, process.inducing_factor.whitening)
    condition = torch.linalg.cond(process.factor).max().item() ** 2
    limits = rounding(dtype, condition=condition, scale=derived.abs().max().item())
    assert_close(site_information(process), derived, **limits)


def test_noise_below_the_least_tells_as_much_as_the_least_even_what_was_sure(rng):
    problem = random_sparse_gp(rng)
    prior = sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean).process
    sure = replace(prior, whitened_root=torch.zeros_like(prior.whitened_root))
    new = random_observations(rng, num_observations=1)
    found = [
        informed(belief).absorb(new.inputs, new.targets, noise_variance=noise, inducing="keep")[0].process.information
        for belief in (prior, sure)
        for noise in (1e-70, 1e-200)
    ]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[2], found[3])
    assert (found[2] > 1e50).all()


def in_units(gp, unit):
    """A GP of the same function in other units."""
    kernel, mean = copy.deepcopy(gp.kernel), copy.deepcopy(gp.mean)
    kernel.outputscale = kernel.outputscale * unit**2
    mean.constant.data = unit * mean.constant
    scaled = sg.SparseGP.from_prior(kernel, gp.inducing_points, mean=mean).process
    scaled = replace(scaled, jitter=gp.process.jitter * unit**2)
    return sg.SparseGP(scaled.with_belief(gp.whitened_mean, gp.process.whitened_root))


ROWS = {
    "block": lambda X: X,
    "one": lambda X: X[:1],
    "averages": lambda X: sg.evidence.average(X, [0, 0, 1, 1, 2, 2, 2, 3]),
    "slopes": lambda X: sg.evidence.gradient(X[:3]),
    "both": lambda X: sg.evidence.combine(sg.evidence.gradient(X[:2]), X[2:], sg.evidence.total(X, [0] * 8)),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("num_inducing", [5, 6, 8])
def test_what_is_learned_does_not_hang_on_the_unit_of_the_targets(rng, rows, num_inducing):
    unit, gp = 300.0, random_sparse_gp(rng, base=RBFKernel).gp
    X = 1.5 * torch.rand(8, 2, generator=rng, dtype=torch.float64)
    told = ROWS[rows](X)
    n = len(told) if isinstance(told, torch.Tensor) else told.num_rows
    y, noise = torch.randn(n, generator=rng, dtype=torch.float64), 0.02 + torch.rand(n, generator=rng).double()
    shape = (n,) if isinstance(told, torch.Tensor) else told.target_shape
    one, info = gp.absorb(told, y.reshape(shape), noise_variance=noise.reshape(shape), num_inducing=num_inducing)
    other, same = in_units(gp, unit).absorb(
        told, unit * y.reshape(shape), noise_variance=unit**2 * noise.reshape(shape), num_inducing=num_inducing
    )
    assert torch.equal(other.inducing_points, one.inducing_points)
    assert same.num_swapped == info.num_swapped
    limits = rounding(torch.float64, condition=1e7, scale=3.0)
    assert_close(
        other.predict(X).mean, unit * one.predict(X).mean, **rounding(torch.float64, condition=1e7, scale=unit)
    )
    assert_close(other.whitened_covariance, one.whitened_covariance, **limits)
    assert_close(same.residual_trace, info.residual_trace, **limits)
    assert_close(same.lost_trace, info.lost_trace, **limits)
