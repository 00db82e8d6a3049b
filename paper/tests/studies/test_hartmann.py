"""The loop on Hartmann6: what it reports, what methods share, and what exact means."""

import json
import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch
from tests.support.reference import exact_gp

from paper.engine.running import UnitTask, execute
from paper.schema.configuration import read_configuration
from paper.schema.record import Unit
from paper.studies.hartmann import STUDY, TASKS, HartmannSettings, make_optimizer
from streamgp.testing.tolerances import tolerance

TINY = HartmannSettings(
    num_initial=6,
    num_evaluations=2,
    num_inducing=5,
    num_restarts=1,
    raw_samples=4,
    max_iterations=3,
    num_fantasies=2,
    num_samples=8,
)
OPTIMUM = 3.32237


def run_quietly(problem, method, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return STUDY.run(problem, method, seed, TINY)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "method"),
    [
        ("noise0.5-q3", "exact-qnei"),
        pytest.param("noise0.1-q1", "svgp-qkg", marks=pytest.mark.thorough),
        ("poisson-q3", "svgp-qei"),
        ("poisson-q3", "random"),
    ],
)
def test_best_values_never_fall_and_stay_below_the_optimum(problem, method):
    outcome = run_quietly(problem, method, 1)
    counts = [6, 8] if problem.endswith("q3") else [6, 7, 8]
    assert outcome["num_evaluations"] == counts
    assert outcome["best"] == sorted(outcome["best"])
    assert 0.0 <= outcome["best"][0] <= outcome["best"][-1] <= OPTIMUM
    assert len(outcome["recommended"]) == len(counts)
    assert all(0.0 <= value <= OPTIMUM for value in outcome["recommended"])
    assert len(outcome["seconds"]) == len(counts) - 1
    json.dumps(outcome, allow_nan=False)


@pytest.mark.slow
def test_methods_of_a_seed_share_the_initial_points():
    first, second = (run_quietly("noise0.5-q3", "random", 3), run_quietly("noise0.1-q1", "random", 3))
    assert first["best"][0] == second["best"][0]


@pytest.mark.slow
def test_infeasible_points_are_worth_nothing():
    generator = torch.Generator().manual_seed(2)
    X = torch.rand(6, 6, generator=generator, dtype=torch.float64)
    problem = TASKS["noise0.5-q3"].problem
    values = [float(problem(x.unsqueeze(0))) if float(x.sum()) <= 3.0 else 0.0 for x in X]
    assert math.isclose(run_quietly("noise0.5-q3", "random", 2)["best"][0], max(values), rel_tol=1e-3)


def test_exact_means_an_exact_gp(rng):
    task = TASKS["noise0.5-q3"]
    X = torch.rand(8, 6, generator=rng, dtype=torch.float64)
    Y = task.problem.observe(X, rng)
    optimizer = make_optimizer(task, "exact-qnei", 0, settings=TINY)
    optimizer.tell(X, Y)
    gp = optimizer.model().gps[0]
    assert gp.num_inducing == 8
    y = (Y[:, 0] - Y[:, 0].mean()) / Y[:, 0].std(correction=0)
    noise = 0.25 / Y[:, 0].var(correction=0) * torch.eye(8, dtype=torch.float64)
    W = torch.rand(5, 6, generator=rng, dtype=torch.float64)
    reference, predicted = exact_gp(gp.kernel, gp.mean, X, y, noise, W), gp.predict(W, covariance=True)
    # The jitter on the covariance of the inducing points, 1e-8 of its variance or less, is all that is between them.
    torch.testing.assert_close(predicted.mean, reference.mean, **tolerance(torch.float64, scale=1e3))
    torch.testing.assert_close(predicted.covariance, reference.covariance, **tolerance(torch.float64, scale=1e3))


@pytest.mark.slow
def test_sparse_models_have_at_most_their_number_of_inducing_points(rng):
    task = TASKS["noise0.1-q3"]
    X = torch.rand(8, 6, generator=rng, dtype=torch.float64)
    optimizer = make_optimizer(task, "svgp-qnei", 0, settings=TINY)
    optimizer.tell(X, task.problem.observe(X, rng))
    assert [gp.num_inducing for gp in optimizer.model().gps] == [5, 5]


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_settings_can_be_read(scale):
    assert read_configuration(STUDY, scale).num_trials >= 5
    assert set(TASKS) == set(STUDY.problems)


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["svgp-qkg", "exact-qnei"])
def test_a_unit_repeats_bit_for_bit_on_the_same_machine(method):
    task = UnitTask(Unit("hartmann", "tiny", "noise0.5-q3", method, 3), STUDY, TINY)
    records = []
    for _ in range(2):  # in a process of its own, as in a run
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            records.append(pool.submit(execute, task).result())
    first, second = (record.outcome for record in records)
    repeated = ("num_evaluations", "best", "recommended")  # times are not
    assert {name: first[name] for name in repeated} == {name: second[name] for name in repeated}
