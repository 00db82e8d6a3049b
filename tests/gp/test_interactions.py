"""The kernel of single inputs, pairs, all and ripples, against its definition."""

from itertools import combinations

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.gp.interactions import InteractionFunction, InteractionKernel
from streamgp.gp.kernels import read_kernel
from streamgp.testing.tolerances import tolerance


def make(rng, d, dtype=torch.float64):
    kernel = InteractionKernel(d).to(dtype)
    with torch.no_grad():
        kernel.lengthscale = 0.5 + torch.rand(d, generator=rng, dtype=dtype)
        kernel.logits.copy_(torch.randn(kernel.logits.shape, generator=rng, dtype=dtype))
    return kernel


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_kernel_is_a_mean_over_sets_of_inputs(rng, d, dtype):
    kernel = make(rng, d, dtype)
    X, Y = (torch.rand(n, d, generator=rng, dtype=dtype) for n in (4, 3))
    squared = ((X.unsqueeze(1) - Y) / kernel.lengthscale).square()
    terms = []
    for size in sorted({1, min(2, d), d}):
        sets = [torch.exp(-0.5 * d / size * squared[..., list(s)].sum(-1)) for s in combinations(range(d), size)]
        terms.append(torch.stack(sets).mean(0))
    terms.append(torch.exp(-18.0 * squared.sum(-1)))
    expected = (torch.stack(terms, dim=-1) * kernel.shares).sum(-1)
    assert_close(kernel.shares.sum(), torch.ones((), dtype=dtype), **tolerance(dtype))
    assert_close(read_kernel(kernel).matrix(X, Y), expected, **tolerance(dtype))
    assert_close(kernel(X, Y).to_dense(), expected, **tolerance(dtype))
    assert_close(kernel(X, diag=True), read_kernel(kernel).diagonal(X), **tolerance(dtype))


@pytest.mark.parametrize("d", [1, 3])
def test_a_batch_of_kernels_equals_a_loop_and_logits_can_be_set(rng, d):
    batch = InteractionKernel(d, batch_shape=torch.Size([2])).double()
    logits = torch.randn(batch.logits.shape, generator=rng, dtype=torch.float64)
    prior, read, write = batch._priors["logits_prior"]
    write(batch, logits)
    assert torch.equal(read(batch), logits)
    assert torch.equal(prior.scale, torch.tensor(2.0))
    batch.lengthscale = torch.tensor([0.5, 0.9]).reshape(2, 1, 1).expand(2, 1, d)
    X, Y = (torch.rand(n, d, generator=rng, dtype=torch.float64) for n in (4, 3))
    for i in range(2):
        one = InteractionKernel(d).double()
        with torch.no_grad():
            one.logits.copy_(logits[i])
            one.lengthscale = float(batch.lengthscale[i, 0, 0])
        assert_close(read_kernel(batch).matrix(X, Y)[i], read_kernel(one).matrix(X, Y), **tolerance(torch.float64))
        assert_close(read_kernel(batch).diagonal(X)[i], read_kernel(one).diagonal(X), **tolerance(torch.float64))


def test_a_kernel_starts_with_an_interaction_of_all_inputs():
    # The shares of single inputs, pairs, all and ripples before any data: e^-2, e^-2, 1 and e^-4 of their sum.
    weights = torch.tensor([-2.0, -2.0, 0.0, -4.0]).exp()
    assert_close(InteractionKernel(4).shares.detach(), weights / weights.sum())


def test_with_nothing_but_interactions_of_all_it_is_the_squared_exponential_kernel(rng):
    kernel, X = make(rng, 3), torch.rand(4, 3, generator=rng, dtype=torch.float64)
    with torch.no_grad():
        kernel.logits.copy_(torch.tensor([-800.0, -800.0, 0.0, -800.0]))
    rbf = RBFKernel(ard_num_dims=3).double()
    rbf.lengthscale = kernel.lengthscale
    assert_close(kernel(X).to_dense(), rbf(X).to_dense())


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gradients_are_those_of_the_values(rng, d):
    X, Y = (torch.rand(n, d, generator=rng, dtype=torch.float64, requires_grad=True) for n in (2, 3))
    lengthscale = (0.5 + torch.rand(1, d, generator=rng, dtype=torch.float64)).requires_grad_()
    shares = torch.rand(min(d, 3) + 1, generator=rng, dtype=torch.float64, requires_grad=True)

    def evaluate(x, y, lengthscale, shares):
        return InteractionFunction(lengthscale, shares).matrix(x, y)

    assert torch.autograd.gradcheck(evaluate, (X, Y, lengthscale, shares))
    assert torch.autograd.gradgradcheck(evaluate, (X, Y, lengthscale, shares))


def test_gradients_reach_inputs_and_shares(rng):
    kernel = make(rng, 3)
    X = torch.rand(3, 3, generator=rng, dtype=torch.float64, requires_grad=True)
    read_kernel(kernel).matrix(X, X.detach())[0, 1].backward()
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in kernel.parameters())


@pytest.mark.parametrize("d", [1, 2, 4])
def test_frequencies_have_the_kernel_as_their_mean_cosine(rng, d):
    kernel, num = make(rng, d), 40_000
    function = read_kernel(kernel)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    X = torch.rand(2, d, generator=rng, dtype=torch.float64)
    frequencies = function.frequencies((num, d), normal)
    estimate = torch.cos(frequencies @ (X[0] - X[1])).mean()
    # Cosines have a variance of at most one half around their mean: five standard errors.
    assert (estimate - function.matrix(X[:1], X[1:])).abs() < 5.0 * (0.5 / num) ** 0.5


def test_what_was_learned_comes_back_from_a_file_with_its_prior(rng, tmp_path):
    X = torch.rand(10, 2, generator=rng, dtype=torch.float64)
    gp = sg.fit(X, X.sum(-1), kernel="interactions", num_inducing=6, max_iterations=3).gp
    gp.save(tmp_path / "gp")
    again = sg.load(tmp_path / "gp")
    assert torch.equal(again.predict(X).mean, gp.predict(X).mean)
    assert again.kernel.base_kernel.logits_prior.scale == 2.0
