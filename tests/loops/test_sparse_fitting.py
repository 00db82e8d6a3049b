import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.likelihoods import Gaussian
from streamgp.loops.settings import SurrogateSettings
from streamgp.loops.sparse_fitting import _may_be_noisy, _most_points, is_refit_due
from streamgp.loops.state import current, refitted
from streamgp.loops.suggest import make_context
from streamgp.testing.tolerances import approximation, judgement

BOX = [(0.0, 1.0), (0.0, 1.0)]


def told(rng, n=8, **options):
    optimizer = sg.Optimizer(BOX, **options)
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(X, wave(X))
    return optimizer, X


def wave(X):
    return 20.0 + 5.0 * torch.sin(4 * X).sum(-1)


def fitted(optimizer):
    optimizer._state = refitted(optimizer._state, optimizer._settings)
    return optimizer._state


@pytest.mark.slow
def test_new_data_is_absorbed_between_fits_and_kept_by_the_next(rng):
    optimizer, _ = told(rng, refit=3)
    before = fitted(optimizer).surrogate
    new = torch.tensor([[0.97, 0.03], [0.5, 0.5]], dtype=torch.float64)
    optimizer.tell(new, wave(new))
    after = fitted(optimizer).surrogate
    unit = wave(new).sub(after.units[0].offset) / after.units[0].scale
    errors = [(one.model().posterior(new).mean.squeeze(-1) - unit).abs().max() for one in (before, after)]
    assert errors[1] < 0.5 * errors[0]
    assert after.num_fitted == before.num_fitted == 8
    assert after.results[0].gp.num_inducing == 10
    optimizer.tell(new[:1], wave(new[:1]))
    assert fitted(optimizer).surrogate.num_fitted == 11


@pytest.mark.slow
def test_absorbing_equals_conditioning_where_every_point_is_an_inducing_point(rng):
    optimizer, _ = told(rng, likelihood=Gaussian(0.5, is_learned=False), refit="never")
    surrogate = fitted(optimizer).surrogate
    new = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(new, wave(new))
    expected = surrogate.model().condition_on_observations(new, surrogate.units[0].inside(wave(new)).unsqueeze(-1))
    grid = torch.rand(20, 2, generator=rng, dtype=torch.float64)
    one, other = (model.posterior(grid) for model in (fitted(optimizer).surrogate.model(), expected))
    assert_close(one.mean, other.mean, **approximation(1e-4, "jitter"))
    assert_close(one.variance, other.variance, **approximation(1e-3, "jitter", scale=0.1))


@pytest.mark.slow
def test_the_size_stays_bounded(rng):
    optimizer, _ = told(rng, num_inducing=6, refit="never")
    fitted(optimizer)
    for _ in range(3):
        X = torch.rand(5, 2, generator=rng, dtype=torch.float64)
        optimizer.tell(X, wave(X))
        assert fitted(optimizer).surrogate.results[0].gp.num_inducing == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refit", "num_new", "is_due"),
    [("always", 0, False), ("always", 1, True), ("never", 5, False), (3, 2, False), (3, 3, True), ("auto", 1, True)],
)
def test_a_fit_is_due_by_policy(rng, refit, num_new, is_due):
    optimizer, _ = told(rng, refit=refit)
    fitted(optimizer)
    new = torch.rand(num_new, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(new, wave(new))
    state = optimizer._state
    assert is_refit_due(state.surrogate, current(state, optimizer._settings), optimizer._settings) is is_due


@pytest.mark.slow
def test_the_first_failure_gets_a_model_of_success(rng):
    optimizer, X = told(rng, refit="never")
    assert not fitted(optimizer).surrogate.knows_success
    optimizer.tell_failure([[0.9, 0.9]])
    state = fitted(optimizer)
    assert state.surrogate.knows_success
    latent = state.surrogate.model().posterior(torch.tensor([[0.9, 0.9], X[0].tolist()]).double()).mean[:, 1]
    assert latent[0] < latent[1]
    optimizer.tell([[0.3, 0.3], [0.91, 0.9]], [20.0, float("nan")])
    after = fitted(optimizer).surrogate.model().posterior(torch.tensor([[0.9, 0.9]]).double()).mean[0, 1]
    assert after < latent[0]


@pytest.mark.slow
def test_hyperparameters_are_searched_from_the_start_when_data_has_doubled(rng):
    optimizer, _ = told(rng)
    assert fitted(optimizer).surrogate.num_cold == 8
    for expected in (8, 16):
        X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
        optimizer.tell(X, wave(X))
        assert fitted(optimizer).surrogate.num_cold == expected


@pytest.mark.slow
def test_a_known_noise_is_kept_in_the_users_units(rng):
    optimizer, _ = told(rng, likelihood=Gaussian(2.0, is_learned=False))
    for _ in range(2):
        surrogate = fitted(optimizer).surrogate
        noise = surrogate.results[0].likelihood.noise_variance * surrogate.units[0].scale ** 2
        assert noise.item() == pytest.approx(2.0)
        X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
        optimizer.tell(X, 3.0 * wave(X))


@pytest.mark.slow
def test_a_kernel_of_the_user_is_used_and_what_is_frozen_stays(rng):
    kernel = ScaleKernel(RBFKernel())
    kernel.base_kernel.lengthscale = 0.3
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    optimizer, _ = told(rng, kernel=kernel)
    for _ in range(2):
        found = fitted(optimizer).surrogate.results[0].gp.kernel
        assert isinstance(found.base_kernel, RBFKernel)
        assert found.base_kernel.lengthscale.item() == pytest.approx(0.3)
        optimizer.tell([[0.2, 0.8]], [20.0])


@pytest.mark.slow
def test_failures_are_pending_for_acquisitions_that_know_no_limits(rng):
    optimizer, _ = told(rng, acquisition="qucb")
    optimizer.tell_failure([[0.5, 0.5]])
    context = make_context(fitted(optimizer), optimizer._settings)
    assert context.model.num_outputs == 1
    assert context.pending.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("num_objectives", "output", "repeats", "expected"),
    [(1, 0, None, False), (1, 1, None, True), (2, 0, None, True), (2, 1, True, False), (1, 1, True, False)]
    + [(num, output, False, True) for num in (1, 2) for output in (0, 1)],
)
def test_noise_is_ruled_out_by_a_repeat_which_is_asked_for_with_a_single_objective(
    num_objectives, output, repeats, expected
):
    goals = [sg.Objective(f"goal {j}") for j in range(num_objectives)]
    constraints = [] if num_objectives == 2 else [sg.Constraint(upper=0.5)]
    optimizer = sg.Optimizer(BOX, objectives=goals, constraints=constraints)
    X = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.1, 0.2]], dtype=torch.float64)[: 2 if repeats is None else 3]
    y = torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0 if repeats else 2.5]], dtype=torch.float64)[: len(X)]
    optimizer.tell(X, y)
    data = current(optimizer._state, optimizer._settings)
    assert _may_be_noisy(data, optimizer._settings, output) is expected


@pytest.mark.parametrize(("num_values", "expected"), [(20, 100), (200, 100), (300, 150), (5000, 300)])
def test_inducing_points_grow_with_the_data_unless_their_number_is_given(num_values, expected):
    assert _most_points(SurrogateSettings(num_inducing=None), num_values) == expected
    assert _most_points(SurrogateSettings(num_inducing=60), num_values) == 60


@pytest.mark.slow
def test_many_outcomes_told_at_once_are_all_learned_after_a_choice_by_a_sample(rng):
    X = torch.rand(230, 2, generator=rng, dtype=torch.float64)
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2)
    optimizer.tell(X, torch.sin(5.0 * X).sum(-1))
    surrogate = optimizer.inspect().surrogate
    assert (surrogate.num_points, surrogate.num_fitted, surrogate.num_cold) == (230, 230, 230)
    assert surrogate.comparisons[0].num_points == 200
    assert_close(optimizer.predict(X).mean, torch.sin(5.0 * X).sum(-1), **judgement(absolute=1e-2))
