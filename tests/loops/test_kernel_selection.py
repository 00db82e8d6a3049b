from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

import streamgp as sg
from streamgp.gp.interactions import InteractionKernel
from streamgp.loops.learned_rows import LearnedRows
from streamgp.loops.model_selection import Candidates, is_comparison_due, select_model
from streamgp.loops.surrogate import _ripple_share
from streamgp.loops.units import OutcomeUnits


def surrogate_of(X, y, **options):
    optimizer = sg.Optimizer([(0.0, 1.0)] * X.shape[-1], **options)
    optimizer.tell(X, y)
    return optimizer.inspect().surrogate


def kernel_of(result):
    return result.gp.process.prior.kernel


def wavy_sum(X):
    return torch.sin(9.0 * X + torch.arange(X.shape[-1])).sum(-1)


@pytest.mark.slow
def test_a_sum_is_taken_for_one_and_predicted_better(rng):
    X, far = (torch.rand(n, 4, generator=rng, dtype=torch.float64) for n in (45, 300))
    errors = []
    for kernel in (None, "rbf"):
        optimizer = sg.Optimizer([(0.0, 1.0)] * 4, kernel=kernel)
        optimizer.tell(X, wavy_sum(X))
        errors.append((optimizer.predict(far).mean - wavy_sum(far)).square().mean())
    assert isinstance(kernel_of(surrogate_of(X, wavy_sum(X)).results[0]), InteractionKernel)
    assert errors[0] < 0.25 * errors[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_the_kernel_under_which_outcomes_are_likelier_is_taken(seed):
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(20, 3, generator=generator, dtype=torch.float64)
    surrogate = surrogate_of(X, torch.exp(-8.0 * (X - 0.4).square().sum(-1)))
    (chosen,), (other,) = surrogate.results, surrogate.others
    assert {type(kernel_of(each)) for each in (chosen, other)} == {RBFKernel, InteractionKernel}
    assert chosen.info.bound >= other.info.bound


@pytest.mark.slow
def test_each_outcome_has_the_kernel_that_suits_it(rng):
    X = torch.rand(45, 4, generator=rng, dtype=torch.float64)
    product = torch.exp(-8.0 * (X - 0.4).square().sum(-1))
    surrogate = surrogate_of(X, torch.stack([wavy_sum(X), product], -1), constraints=[sg.Constraint(upper=0.5)])
    assert isinstance(kernel_of(surrogate.results[0]), InteractionKernel)
    for chosen, other in zip(surrogate.results, surrogate.others, strict=True):
        assert {type(kernel_of(each)) for each in (chosen, other)} == {RBFKernel, InteractionKernel}
    gain = [
        chosen.info.bound - other.info.bound for chosen, other in zip(surrogate.results, surrogate.others, strict=True)
    ]
    assert gain[0] >= 0.0
    # The constraint may have noise, as no point was repeated: RBF stays unless the other is clearly likelier.
    assert isinstance(kernel_of(surrogate.results[1]), RBFKernel)
    assert gain[1] > -3.0


@pytest.mark.slow
def test_counts_beside_a_real_outcome_keep_their_kernel(rng):
    X = torch.rand(10, 2, generator=rng, dtype=torch.float64)
    counts = torch.poisson(5.0 * X[:, 0], generator=rng)
    constraint = sg.Constraint(lower=2.0, likelihood="poisson")
    surrogate = surrogate_of(X, torch.stack([wavy_sum(X), counts], -1), constraints=[constraint])
    assert surrogate.others[0] is not None
    assert surrogate.others[1] is None


@pytest.mark.parametrize(("num_dims", "kernel", "expected"), [(1, None, RBFKernel), (2, "matern", MaternKernel)])
def test_one_input_and_a_kernel_of_the_users_leave_no_choice(rng, num_dims, kernel, expected):
    X = torch.rand(6, num_dims, generator=rng, dtype=torch.float64)
    surrogate = surrogate_of(X, X.sum(-1), kernel=kernel)
    learned = kernel_of(surrogate.results[0])
    assert isinstance(getattr(learned, "base_kernel", learned), expected)
    assert surrogate.others == (None,)


def choose(X, fit, before, other, **options):
    """The chosen fit and the other, where a fit from an earlier one is made by `fit`."""
    rows = LearnedRows.of(X, X.sum(-1))
    candidates = Candidates(
        rows, [OutcomeUnits()], fit, lambda units, start: None, before=before, other=other, **options
    )
    selected = select_model(candidates)
    return selected.result, selected.other


def test_between_comparisons_the_kernel_stays_and_the_other_waits(rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    before = surrogate_of(X, X.sum(-1))
    (chosen,), (other,) = before.results, before.others
    asked = []

    def fit(targets, *, likelihood, before, kernel):
        asked.append((before, kernel))
        return before

    kept = choose(X, fit, chosen, other, is_compared=False)
    assert kept == (chosen, other)
    assert asked == [(chosen, None)]
    choose(X, fit, chosen, other, is_compared=True)
    assert [each for each, _ in asked[1:]] == [chosen, other]


def test_comparisons_become_rare():
    due = [n for n in range(2, 400) if is_comparison_due(n - 1, n)]
    assert all(n in due for n in range(3, 8))
    gaps = [later - earlier for earlier, later in pairwise(due)]
    assert max(gaps) <= 20
    assert gaps[-1] >= 15
    assert due[-1] <= 200
    assert is_comparison_due(40, 60)
    assert not is_comparison_due(40, 40)


def test_ripples_are_a_share_of_the_variance_and_rbf_has_none(rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    surrogate = surrogate_of(X, X.sum(-1))
    for result in (*surrogate.results, *surrogate.others):
        kernel = kernel_of(result)
        shares = getattr(kernel, "shares", torch.zeros(1))
        assert _ripple_share(result) == float(shares[-1])
    assert surrogate.rough_share(0) == surrogate.noise_share(0) + _ripple_share(surrogate.results[0])


@pytest.mark.parametrize(("lead", "is_noisy", "expected"), [(1.0, False, 1), (1.0, True, 0), (5.0, True, 1)])
def test_with_noise_the_second_kernel_must_be_clearly_likelier(rng, lead, is_noisy, expected):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    surrogate = surrogate_of(X, X.sum(-1))
    fits = sorted(
        (*surrogate.results, *surrogate.others), key=lambda each: isinstance(kernel_of(each), InteractionKernel)
    )
    plain, summed = (replace(each, info=replace(each.info, bound=k * lead)) for k, each in enumerate(fits))
    for pair in ((plain, summed), (summed, plain)):
        chosen, other = choose(X, lambda *_, before, **__: before, *pair, may_be_noisy=is_noisy)
        assert (chosen, other) == ((plain, summed), (summed, plain))[expected]
