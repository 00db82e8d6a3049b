from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.distributions import Normal
from torch.testing import assert_close

import streamgp as sg
from streamgp.gp.interactions import InteractionKernel
from streamgp.loops.learned_rows import LearnedRows
from streamgp.loops.model_selection import (
    Candidates,
    is_comparison_due,
    kernel_names,
    log_forecasts,
    select_model,
)
from streamgp.loops.surrogate import _ripple_share
from streamgp.loops.units import OutcomeUnits
from streamgp.testing.tolerances import judgement


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
def test_the_kernel_under_which_outcomes_are_likelier_is_taken_at_first(seed):
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(20, 3, generator=generator, dtype=torch.float64)
    surrogate = surrogate_of(X, torch.exp(-8.0 * (X - 0.4).square().sum(-1)))
    (chosen,), (comparison,) = surrogate.results, surrogate.comparisons
    assert [type(kernel_of(each)) for each in comparison.fits] == [RBFKernel, InteractionKernel, MaternKernel]
    assert comparison.scores == tuple(each.info.bound for each in comparison.fits)
    assert chosen.info.bound == max(comparison.scores)


@pytest.mark.slow
def test_each_outcome_has_the_kernel_that_suits_it(rng):
    X = torch.rand(45, 4, generator=rng, dtype=torch.float64)
    product = torch.exp(-8.0 * (X - 0.4).square().sum(-1))
    surrogate = surrogate_of(X, torch.stack([wavy_sum(X), product], -1), constraints=[sg.Constraint(upper=0.5)])
    assert isinstance(kernel_of(surrogate.results[0]), InteractionKernel)
    # The constraint may have noise, as no point was repeated: a sum has to be clearly likelier than all others.
    assert not isinstance(kernel_of(surrogate.results[1]), InteractionKernel)


@pytest.mark.slow
def test_counts_beside_a_real_outcome_keep_their_kernel(rng):
    X = torch.rand(10, 2, generator=rng, dtype=torch.float64)
    counts = torch.poisson(5.0 * X[:, 0], generator=rng)
    constraint = sg.Constraint(lower=2.0, likelihood="poisson")
    surrogate = surrogate_of(X, torch.stack([wavy_sum(X), counts], -1), constraints=[constraint])
    assert surrogate.comparisons[0] is not None
    assert surrogate.comparisons[1] is None


def test_a_kernel_of_the_users_leaves_no_choice_and_one_input_leaves_no_sum(rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    surrogate = surrogate_of(X, X.sum(-1), kernel="matern")
    assert isinstance(kernel_of(surrogate.results[0]).base_kernel, MaternKernel)
    assert surrogate.comparisons == (None,)
    assert kernel_names(1) == ("rbf", "matern")
    assert kernel_names(21) == ("rbf",)


def choose(rows, fit, before, comparison, **options):
    """The chosen fit and the comparison, where a fit from an earlier one is made by `fit`."""
    candidates = Candidates(
        rows, [OutcomeUnits()], fit, lambda units, start: None, before=before, comparison=comparison, **options
    )
    selected = select_model(candidates)
    return selected.result, selected.comparison


def test_between_comparisons_the_kernel_stays_and_the_others_wait(rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    before, rows = surrogate_of(X, X.sum(-1)), LearnedRows.of(X, X.sum(-1))
    (chosen,), (comparison,) = before.results, before.comparisons
    asked = []

    def fit(targets, *, likelihood, before, kernel):
        asked.append((before, kernel))
        return before

    assert choose(rows, fit, chosen, comparison, is_compared=False) == (chosen, comparison)
    assert asked == [(chosen, None)]
    choose(rows, fit, chosen, comparison, is_compared=True)
    assert [each for each, _ in asked[1:]] == list(comparison.fits)


def test_a_kernel_is_judged_by_what_it_forecast_and_not_by_what_it_was_fitted_to(rng):
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2)
    optimizer.tell(X, wavy_sum(X))
    before = optimizer.inspect().surrogate.comparisons[0]
    new = torch.rand(2, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(new, wavy_sum(new))
    after = optimizer.inspect().surrogate.comparisons[0]
    for old, was, now in zip(before.fits, before.scores, after.scores, strict=True):
        f, noise = before.units.inside(wavy_sum(new)), old.likelihood.gaussian_noise_variance
        process = old.gp.process
        known, prior = process.variance(new) + noise, process.prior.variance(new)
        forecast = [Normal(process.mean(new), v.sqrt()).log_prob(f).exp() for v in (known, known + prior)]
        gained = (0.95 * forecast[0] + 0.05 * forecast[1]).log().sum()
        assert_close(gained, torch.tensor(now - was, dtype=torch.float64), **judgement(absolute=1e-6, relative=1e-5))
    chosen = optimizer.inspect().surrogate.results[0]
    assert type(kernel_of(chosen)) is type(kernel_of(after.fits[after.scores.index(max(after.scores))]))


def test_no_single_forecast_decides_for_good(rng):
    X = torch.rand(8, 2, generator=rng, dtype=torch.float64)
    result = surrogate_of(X, X.sum(-1)).results[0]
    far = log_forecasts(result, result.likelihood, X[:1], torch.full((1,), 4.0, dtype=torch.float64))
    assert far > -15.0


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
    for result in surrogate.comparisons[0].fits:
        kernel = kernel_of(result)
        shares = getattr(kernel, "shares", torch.zeros(1))
        assert _ripple_share(result) == float(shares[-1])
    assert surrogate.rough_share(0) == surrogate.noise_share(0) + _ripple_share(surrogate.results[0])


@pytest.mark.parametrize(("lead", "is_noisy", "expected"), [(1.0, False, 1), (1.0, True, 0), (5.0, True, 1)])
def test_with_noise_a_sum_must_be_clearly_likelier(rng, lead, is_noisy, expected):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    surrogate, rows = surrogate_of(X, X.sum(-1)), LearnedRows.of(X, X.sum(-1))
    comparison = replace(surrogate.comparisons[0], scores=(0.0, lead, -9.0))
    chosen, _ = choose(rows, lambda *_, before, **__: before, surrogate.results[0], comparison, may_be_noisy=is_noisy)
    assert chosen is comparison.fits[expected]
