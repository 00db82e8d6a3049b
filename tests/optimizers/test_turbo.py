import math
from dataclasses import dataclass

import pytest
import torch
from matplotlib.figure import Figure
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import AbstractDrawingRule, LookaheadThompson, Random, RegionRules, Thompson
from streamgp.errors import (
    FileFormatError,
    OptionError,
    ShapeError,
    SupportError,
    UnsupportedError,
    ValueRangeError,
)
from streamgp.likelihoods import Gaussian
from streamgp.testing.tolerances import judgement

BOUNDS = [(-5.0, 5.0), (0.0, 10.0), (-1.0, 1.0)]
PEAK = torch.tensor([1.0, 4.0, 0.2]).double()
TS, LTS = Thompson(200), LookaheadThompson(200, depth=2, num_paths=3)
SMALL = {"num_initial": 8, "num_inducing": 20, "acquisition": LTS}
VARIANTS = [
    {"model": "sparse", "acquisition": LTS},
    {"model": "exact", "acquisition": TS},
    pytest.param({"model": "sparse", "acquisition": TS}, marks=pytest.mark.thorough),
    pytest.param({"model": "exact", "acquisition": LTS}, marks=pytest.mark.thorough),
]


@sg.storage.register
@dataclass(frozen=True)
class LargestMeans(AbstractDrawingRule):
    num_candidates: int = 100

    def propose(self, context, q, *, seed):
        raise NotImplementedError

    def draw(self, context, candidates, q, *, num_candidates, generator):
        points = candidates(self.num_candidates)
        return points[context.model.posterior(points).mean.squeeze(-1).topk(q).indices]


def bowl(X):
    return -((X - PEAK) / torch.tensor([10.0, 10.0, 2.0]).double()).square().sum(-1)


def turbo(**options):
    return sg.TurboOptimizer(BOUNDS, **{**SMALL, **options})


def advance(optimizer, num_steps, function=bowl, q=4):
    for _ in range(num_steps):
        X = optimizer.ask(q)
        optimizer.tell(X, function(X))
    return optimizer


@pytest.mark.slow
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_the_peak_of_a_bowl_is_found(options):
    best = advance(turbo(**options), 10).best()
    assert best.observed > -0.005
    assert best.observed == pytest.approx(float(bowl(best.X.unsqueeze(0))))


def test_points_lie_in_the_bounds_and_differ():
    X = torch.cat([turbo().ask(8), advance(turbo(), 3).ask(20)])
    lower, upper = torch.tensor(BOUNDS).double().mT
    assert torch.equal(X.clamp(lower, upper), X)
    assert len(torch.unique(X, dim=0)) == len(X)


def test_bounds_as_a_tensor_and_as_pairs_are_the_same():
    pairs, tensor = turbo(), sg.TurboOptimizer(torch.tensor(BOUNDS).mT, **SMALL)
    assert_close(pairs.ask(5), tensor.ask(5))


def test_asking_again_before_telling_does_not_repeat_points():
    optimizer = advance(turbo(), 3)
    X = torch.cat([optimizer.ask(4) for _ in range(3)])
    assert torch.cdist(X, X).add(torch.eye(12)).min() > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("options", VARIANTS[:2], ids=str)
def test_the_same_seed_gives_the_same_suggestions(options):
    first, second = (advance(turbo(seed=3, **options), 2).ask(4) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(turbo(seed=3).ask(4), turbo(seed=4).ask(4))


@pytest.mark.slow
@pytest.mark.parametrize("num_steps", [0, 2])
def test_a_loaded_optimizer_suggests_what_the_saved_one_does(tmp_path, num_steps):
    saved = advance(turbo(), num_steps)
    saved.ask(3)  # so that there is a fitted model, and one ask without tell
    saved.save(tmp_path / "turbo.sgp")
    loaded = sg.TurboOptimizer.load(tmp_path / "turbo.sgp")
    assert torch.equal(saved.ask(4), loaded.ask(4))
    assert torch.equal(saved.X, loaded.X)
    assert saved.region == loaded.region
    # Also later, when the next fit starts from the last one.
    assert torch.equal(advance(saved, 1).ask(4), advance(loaded, 1).ask(4))


def test_a_likelihood_object_is_saved_too(tmp_path):
    saved = advance(turbo(likelihood=Gaussian(1e-4, is_learned=False)), 2)
    saved.save(tmp_path / "turbo.sgp")
    assert torch.equal(saved.ask(2), sg.TurboOptimizer.load(tmp_path / "turbo.sgp").ask(2))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["sparse", "exact"])
def test_known_noise_stays_as_it_is_in_the_users_units(model):
    variance = 1e-6
    optimizer = advance(turbo(model=model, likelihood=Gaussian(variance, is_learned=False)), 3)
    X = optimizer.X[:2]
    fitted = optimizer.model()
    noise = fitted.posterior(X, observation_noise=True).variance - fitted.posterior(X).variance
    near = judgement(relative=1e-5)  # a difference of numbers that may be larger
    assert_close(noise.detach(), torch.full((2, 1), variance).double(), **near)


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "other").write_text("no archive")
    with pytest.raises(FileFormatError, match="damaged"):
        sg.TurboOptimizer.load(tmp_path / "other")


@pytest.mark.slow
def test_minimizing_the_negated_function_gives_the_same_suggestions():
    up = advance(turbo(), 2)
    down = advance(turbo(maximize=False), 2, lambda X: -bowl(X))
    assert_close(up.ask(4), down.ask(4))
    assert up.best().observed == -down.best().observed


@pytest.mark.slow
def test_small_counts_are_found_where_they_are_wanted(rng):
    optimizer = turbo(maximize=False, likelihood="poisson", acquisition=TS)
    optimizer = advance(optimizer, 4, lambda X: torch.poisson(torch.exp(2 - 4 * bowl(X)), generator=rng))
    assert bowl(optimizer.X[-4:]).mean() > bowl(optimizer.X[:8]).mean()


@pytest.mark.slow
def test_failed_evaluations_are_left_out_of_the_model_and_do_not_stop_the_search(rng):
    def sometimes(X):
        return torch.where(torch.rand(len(X), generator=rng) < 0.3, math.nan, bowl(X))

    optimizer = advance(turbo(), 5, sometimes)
    assert optimizer.y.isnan().any()
    assert optimizer.best().observed > -0.1
    assert len(optimizer.model().gps[0].inducing_points) <= int((~optimizer.y.isnan()).sum())


def test_an_initial_design_that_fails_goes_on():
    optimizer = turbo()
    first = optimizer.ask(8)
    optimizer.tell(first, torch.full((8,), math.nan))
    second = optimizer.ask(8)
    assert len(torch.unique(torch.cat([first, second]), dim=0)) == 16
    with pytest.raises(ValueRangeError, match=r"of 8 evaluations none has succeeded"):
        optimizer.best()


def test_a_small_region_is_given_up_and_the_best_of_all_runs_is_kept():
    optimizer = turbo(rules=RegionRules(min_length=0.5, failure_tolerance=4))
    advance(optimizer, 2)
    X = optimizer.ask(4)
    best = optimizer.best()
    optimizer.tell(X, torch.full((4,), -10.0))
    assert optimizer.num_runs == 2
    assert optimizer.region.length == 0.8
    assert torch.equal(optimizer.best().X, best.X)
    # A new initial design, other than the first.
    design = optimizer.ask(8)
    assert len(torch.unique(torch.cat([design, turbo().ask(8)]), dim=0)) == 16
    with pytest.raises(ValueRangeError, match="Nothing is known yet: of 0 evaluations"):
        optimizer.model()
    optimizer.tell(design, bowl(design))
    assert len(optimizer.model().gps[0].inducing_points) <= 8  # those of this run


def test_the_initial_design_counts_for_the_best_value_and_not_for_the_region():
    optimizer = turbo()
    X = optimizer.ask(8)
    optimizer.tell(X, bowl(X))
    assert optimizer.region.best == float(bowl(X).max())
    assert (optimizer.region.num_successes, optimizer.region.num_failed) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["elbo", "pll"])
def test_suggestions_stay_in_the_trust_region(objective):
    optimizer = advance(turbo(objective=objective), 2)
    center = optimizer.best().X
    X = optimizer.ask(10)
    lengthscale = optimizer.model().gps[0].kernel.base_kernel.lengthscale.flatten()
    half = 0.5 * optimizer.region.length * lengthscale / lengthscale.log().mean().exp()
    width = torch.tensor([10.0, 10.0, 2.0]).double()
    assert ((X - center).abs() <= half * width + 1e-9).all()


def test_more_points_than_candidates_can_be_asked_for():
    assert advance(turbo(acquisition=Thompson(20)), 2).ask(30).shape == (30, 3)


def test_pictures_are_drawn_before_and_after_data():
    for optimizer in (turbo(), advance(turbo(), 3)):
        for draw in (optimizer.plot_trust_region, optimizer.plot_progress):
            axes = Figure().subplots()
            assert draw(axes) is axes
            assert axes.get_xlabel() == "evaluation"
    (line, *_) = advance(turbo(), 3).plot_trust_region(Figure().subplots()).lines
    assert len(line.get_xdata()) == 12


def test_the_representation_tells_of_the_search():
    shown = repr(advance(turbo(), 2))
    told = "TurboOptimizer(maximize over 3 dimensions by LookaheadThompson: 8 outcomes, 0 pending, best observed "
    assert shown.startswith(told)
    assert shown.endswith(", run 1, length 0.8)")


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (torch.zeros(2, 2), torch.zeros(2), ShapeError, r"X must have shape \(n, 3\)"),
        (torch.zeros(2, 3), torch.zeros(3), ShapeError, r"y must have shape \(2,\).*but has shape \(3,\)"),
        (torch.zeros(1, 3), torch.tensor([math.inf]), SupportError, "Tell a failed evaluation as NaN"),
        (torch.full((1, 3), math.nan), torch.zeros(1), ValueRangeError, r"X must be finite"),
    ],
)
def test_an_error_in_tell_changes_nothing(X, y, error, message):
    optimizer, twin = advance(turbo(), 1), advance(turbo(), 1)
    with pytest.raises(error, match=message):
        optimizer.tell(X, y)
    assert torch.equal(optimizer.X, twin.X)
    assert torch.equal(optimizer.ask(2), twin.ask(2))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "deep"}, OptionError, r"model must be one of 'sparse', 'exact', but is 'deep'"),
        ({"acquisition": "qei"}, OptionError, r"acquisition must be one of 'thompson', 'lookahead_thompson'"),
        ({"objective": "mll"}, OptionError, r"objective must be one of 'elbo', 'pll'"),
        ({"likelihood": "preference"}, UnsupportedError, r"Use streamgp.Optimizer for comparisons"),
        ({"likelihood": "poisson", "model": "exact"}, UnsupportedError, r"model='exact' needs a Gaussian likelihood"),
        ({"num_initial": 1}, ValueRangeError, r"num_initial must be a whole number of at least 2"),
        ({"seed": -1}, ValueRangeError, r"seed must be a whole number"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        turbo(**options)


def test_asking_for_no_points_is_refused():
    with pytest.raises(ValueRangeError, match=r"q must be a whole number of at least 1"):
        turbo().ask(0)


def test_priors_are_those_of_fits_and_the_exact_model_has_its_own():
    optimizer = sg.TurboOptimizer([(0.0, 1.0)] * 2, priors="half_cauchy")
    assert optimizer.to_parts()["settings"].surrogate.training.priors == "half_cauchy"
    with pytest.raises(UnsupportedError, match="has the priors 'dim_scaled'"):
        sg.TurboOptimizer([(0.0, 1.0)] * 2, model="exact", priors="half_cauchy")
    with pytest.raises(OptionError, match="priors"):
        sg.TurboOptimizer([(0.0, 1.0)] * 2, priors="cauchy")


@pytest.mark.slow
def test_ranks_make_suggestions_invariant_to_increasing_maps_of_outcomes():
    bounds = [(0.0, 1.0)] * 2
    # A success that is a share of the best outcome would not be the same.
    rules = sg.optimizers.RegionRules(improvement=0.0)
    first, second = (
        sg.TurboOptimizer(bounds, num_initial=4, scaling="rank", rules=rules, num_inducing=10) for _ in range(2)
    )
    for _ in range(3):
        X = first.ask(4)
        assert torch.equal(second.ask(4), X)
        y = -(X - 0.3).square().sum(-1)
        first.tell(X, y)
        second.tell(X, torch.exp(20.0 * y))


@pytest.mark.slow
def test_the_model_may_be_refitted_now_and_then():
    optimizer = sg.TurboOptimizer([(0.0, 1.0)] * 2, num_initial=4, refit=3, num_inducing=10)
    fits = []
    for _ in range(10):
        X = optimizer.ask(1)
        optimizer.tell(X, -(X - 0.3).square().sum(-1))
        if optimizer.inspect(refit=False).surrogate is not None:
            fits.append(
                (
                    optimizer.inspect(refit=False).surrogate.num_fitted,
                    optimizer.inspect(refit=False).surrogate.num_points,
                )
            )
    assert sorted({fitted for fitted, _ in fits}) == [4, 7]
    assert [points for _, points in fits] == [4, 5, 6, 7, 8, 9]


def test_scalings_and_refits_are_checked():
    with pytest.raises(OptionError, match="scaling"):
        sg.TurboOptimizer([(0.0, 1.0)], scaling="logarithm")
    with pytest.raises(UnsupportedError, match="needs the likelihood 'gaussian'"):
        sg.TurboOptimizer([(0.0, 1.0)], scaling="rank", likelihood="poisson")
    with pytest.raises(UnsupportedError, match="fitted to all data each time"):
        sg.TurboOptimizer([(0.0, 1.0)], model="exact", refit=5)


@pytest.mark.slow
def test_a_region_is_searched_by_a_rule_of_the_users_own_which_is_saved(tmp_path):
    optimizer = advance(turbo(acquisition=LargestMeans()), 6)
    assert optimizer.best().observed > -0.02
    optimizer.save(tmp_path / "own.sgp")
    assert torch.equal(sg.load(tmp_path / "own.sgp").ask(4), optimizer.ask(4))


def test_a_rule_that_does_not_choose_among_candidates_is_refused():
    with pytest.raises(OptionError, match="AbstractDrawingRule"):
        turbo(acquisition=Random())
