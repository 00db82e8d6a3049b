"""Sources with a cost: what is learned of them, which of them is asked, and what a user sees."""

import math

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition.rules.source_rule import KnowledgePerCost
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.loops.source_surrogate import SourceSurrogate
from streamgp.testing.tolerances import judgement, within

COSTS = {"simulation": 1.0, "plant": 20.0}


def plant(point):
    return -4 * (point["x0"] - 0.7) ** 2 - 2 * (point["x1"] - 0.3) ** 2


def twin(point):
    """The plant in other units, and a little off."""
    return 5 + 10 * (plant(point) + 0.05 * math.cos(5 * point["x1"]))


def liar(point):
    return math.sin(9 * point["x0"]) * math.cos(11 * point["x1"])


def optimizer_of(simulation, num_settings=12, **options):
    """An optimizer that knows both sources at the points of a design."""
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, sources=COSTS, target="plant", **options)
    settings = sg.loops.ParameterSpace({"x0": sg.Real(0, 1), "x1": sg.Real(0, 1)})
    points = settings.show(settings.design(num_settings, num_initial=1, num_before=0, seed=3))
    optimizer.tell(points, [simulation(one) for one in points], source="simulation")
    optimizer.tell(points[:8], [plant(one) for one in points[:8]], source="plant")
    return optimizer


def surrogate_of(optimizer) -> SourceSurrogate:
    surrogate = optimizer.inspect().surrogate
    assert isinstance(surrogate, SourceSurrogate)
    return surrogate


def test_a_twin_in_other_units_tells_nearly_all_and_a_liar_nearly_nothing():
    truthful, lying = (surrogate_of(optimizer_of(one)).correlation[0] for one in (twin, liar))
    assert truthful > 0.95
    assert lying.abs() < 0.6


def test_what_a_twin_tells_is_known_of_the_target():
    optimizer = optimizer_of(twin, num_settings=24)
    point = {"x0": 0.83, "x1": 0.41}
    assert optimizer.predict([point]).mean[0] == pytest.approx(plant(point), **within(judgement(absolute=0.1)))
    assert optimizer.predict([{**point, "source": "simulation"}]).mean[0] == pytest.approx(
        twin(point), **within(judgement(absolute=1.0))
    )


def test_the_belief_is_that_of_a_dense_gp():
    surrogate, optimizer = surrogate_of(optimizer_of(twin)), optimizer_of(twin)
    model, rows = surrogate.model(), optimizer._settings.space.inputs(optimizer._state.observations.points)
    rows = model.rows(rows)
    prior, noise = surrogate.gp.row_gp.process.prior, surrogate.noise_variance[rows[:, -1].long()]
    y = surrogate.units[0].inside(optimizer.y[:, 0])
    far = torch.tensor([[0.2, 0.9, 1.0], [0.5, 0.5, 0.0]], dtype=torch.float64)
    K, k = prior.covariance(rows, rows) + noise.diag(), prior.covariance(far, rows)
    mean = prior.mean(far) + k @ torch.linalg.solve(K, y - prior.mean(rows))
    covariance = prior.covariance(far, far) - k @ torch.linalg.solve(K, k.mT)
    posterior = surrogate.gp.row_gp.predict(far, covariance=True)
    assert_close(posterior.mean, mean, **judgement(absolute=1e-4, relative=1e-5))
    assert_close(posterior.covariance, covariance, **judgement(absolute=1e-5, relative=1e-5))


def test_the_value_of_a_measurement_is_the_expected_growth_of_the_best_mean(rng):
    optimizer = optimizer_of(twin)
    surrogate, space = surrogate_of(optimizer), optimizer._settings.space
    rule, model = optimizer._settings.rule, surrogate.model()
    W, setting = (
        space.design(15, num_initial=1, num_before=0, seed=5),
        space.design(1, num_initial=1, num_before=0, seed=6),
    )
    W = rule.at_source(W, 1)
    context = sg.loops.suggest.make_context(optimizer._state, optimizer._settings)
    found, point, source = rule._best_of(model, context, W, setting)
    values = []
    for s, cost in enumerate(COSTS.values()):
        measured = space.inputs(rule.at_source(setting, s))
        every = torch.cat([space.inputs(W), space.inputs(rule.at_source(setting, 1)), measured])
        posterior = model.posterior(every)
        mean, covariance = posterior.mean[:, 0], posterior.distribution.covariance_matrix
        slope = covariance[:-1, -1] / (covariance[-1, -1] + surrogate.noise_variance[s]).sqrt()
        z = torch.randn(200_000, 1, generator=rng, dtype=torch.float64)
        drawn = (mean[:-1] + z * slope).amax(-1)
        values.append((drawn.mean() - mean[:-1].max()) / cost)
    assert source == max(range(2), key=lambda s: float(values[s]))
    assert_close(torch.tensor(found, dtype=torch.float64), values[source], **judgement(absolute=1e-4, relative=0.03))
    assert torch.equal(point, rule.at_source(setting, source))


@pytest.mark.slow
def test_the_best_point_is_found_mostly_by_the_cheap_source():
    optimizer, spent = sg.Optimizer([(0.0, 1.0)] * 2, sources=COSTS, target="plant"), dict.fromkeys(COSTS, 0)
    for _ in range(26):
        (point,) = optimizer.ask()
        spent[point["source"]] += 1
        optimizer.tell([point], [twin(point) if point["source"] == "simulation" else plant(point)])
    best = optimizer.best()
    assert best.X["source"] == "plant"
    assert plant(best.X) > -0.02
    assert spent["simulation"] > 2 * spent["plant"]


def test_a_budget_is_spent_and_not_exceeded():
    optimizer = optimizer_of(twin)
    points = optimizer.ask(budget=4.5)
    assert len(points) == 4
    assert all(one["source"] == "simulation" for one in points)
    assert len(optimizer.pending) == len(optimizer.inspect().why) == 4
    with pytest.raises(ValueRangeError, match="pays for no measurement"):
        optimizer.ask(budget=0.5)
    assert len(optimizer.pending) == 4


def test_costs_may_depend_on_the_setting():
    costs = {"simulation": lambda one: 1.0 + 100.0 * (one["x0"] < 0.5), "plant": 20.0}
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, sources=costs, target="plant", num_initial=4)
    assert sum(one["source"] == "plant" for one in optimizer.ask(4)) == 2
    rule = optimizer._settings.rule
    assert rule.cost({"x0": 0.2}, 0) == 101.0
    assert rule.cost({"x0": 0.7}, 0) == 1.0


def test_a_design_has_all_sources_at_half_of_its_settings():
    rule = KnowledgePerCost(("a", "b", "t"), (1.0, 2.0, 9.0), 2)
    pairs = rule.pairs(15)
    assert [sum(s == each for _, s in pairs) for each in range(3)] == [6, 6, 3]
    assert {j for j, s in pairs if s == 2} == {0, 1, 2}
    assert len(set(pairs)) == 15


def test_a_loaded_optimizer_goes_on_as_it_would_have(tmp_path):
    optimizer = optimizer_of(twin, seed=5)
    optimizer.ask()
    optimizer.save(tmp_path / "run.sgo")
    again = sg.Optimizer.load(tmp_path / "run.sgo")
    assert again.ask() == optimizer.ask()
    assert again.best().X == optimizer.best().X


def test_what_sources_cannot_do_is_refused():
    box = [(0.0, 1.0)]
    with pytest.raises(ArgumentTypeError, match="dictionary of at least two costs"):
        sg.Optimizer(box, sources={"plant": 1.0}, target="plant")
    with pytest.raises(OptionError, match="target must be one of the sources"):
        sg.Optimizer(box, sources=COSTS, target="field")
    with pytest.raises(ValueRangeError, match="cost of source 'plant'"):
        sg.Optimizer(box, sources={"simulation": 1.0, "plant": -1.0}, target="plant")
    with pytest.raises(UnsupportedError, match="single objective"):
        sg.Optimizer(box, sources=COSTS, target="plant", likelihood="poisson")
    with pytest.raises(OptionError, match="'source'"):
        sg.Optimizer({"source": sg.Real(0, 1)}, sources=COSTS, target="plant")
    with pytest.raises(UnsupportedError, match="has no sources"):
        sg.Optimizer(box).tell([[0.5]], [1.0], source="plant")
    with pytest.raises(UnsupportedError, match="A budget is for"):
        sg.Optimizer(box).ask(budget=3.0)
