"""The sampler suggests valid values, learns from a storage alone, and shares it with others."""

import copy
import io
import json
import math
import pickle
import subprocess
import sys
import time
import warnings

import pytest

from streamgp.errors import ArgumentTypeError, NumericalError, OptionError, StreamGPWarning, ValueRangeError
from streamgp.likelihoods import Poisson
from streamgp.optimizers import Search

optuna = pytest.importorskip("optuna", reason="needs the extra streamgp[optuna]")

from optuna.testing.pytest_samplers import (  # noqa: E402 # after the check for the extra
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
)
from optuna.trial import TrialState  # noqa: E402

from streamgp.integrations.optuna import StreamGPSampler  # noqa: E402
from streamgp.integrations.optuna import sampler as sampler_module  # noqa: E402
from streamgp.testing.tolerances import judgement, within  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)

QUICK = Search(num_restarts=1, raw_samples=8, max_iterations=5)
FAIR = Search(num_restarts=2, raw_samples=32, max_iterations=20)


def quick(**options):
    return StreamGPSampler(**{"search": QUICK, "n_startup_trials": 4, "seed": 0, **options})


def run(objective, num_trials, *, direction="minimize", n_jobs=1, storage=None, catch=(), **options):
    study = optuna.create_study(sampler=quick(**options), direction=direction, storage=storage)
    study.optimize(objective, n_trials=num_trials, n_jobs=n_jobs, catch=catch)
    return study


def parabola(trial):
    x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", -1.0, 1.0)
    return (x - 0.3) ** 2 + (y + 0.2) ** 2


def branin(trial):
    x, y = trial.suggest_float("x", -5.0, 10.0), trial.suggest_float("y", 0.0, 15.0)
    bowl = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def mixed(trial):
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    width = trial.suggest_int("width", 1, 100, log=True)
    depth = trial.suggest_int("depth", 0, 20, step=5)
    share = trial.suggest_float("share", -1.0, 1.0, step=0.1)
    kind = trial.suggest_categorical("kind", ["a", "b", None])
    return (math.log10(rate) + 2) ** 2 + 0.3 * (math.log(width) - 2) ** 2 + abs(depth - 10) + share**2 + (kind != "b")


def params_of(study):
    return [trial.params for trial in study.get_trials()]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning:optuna")
@pytest.mark.filterwarnings("ignore:All points that are possible here")
class TestOptunasOwnLaws(BasicSamplerTestCase, RelativeSamplerTestCase):
    """What Optuna asks of every sampler."""

    @pytest.fixture
    def sampler(self):
        return lambda: quick(n_startup_trials=9)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["qnei", "qkg"])
def test_every_kind_of_parameter_is_suggested_within_its_range(acquisition):
    study = run(mixed, 6, acquisition=acquisition)
    for trial in study.get_trials():
        assert trial.state == TrialState.COMPLETE
        for name, distribution in trial.distributions.items():
            assert distribution._contains(distribution.to_internal_repr(trial.params[name]))
        assert trial.params["depth"] in (0, 5, 10, 15, 20)
        assert 10 * trial.params["share"] == pytest.approx(round(10 * trial.params["share"]))


@pytest.mark.slow
def test_the_same_seed_repeats_a_study_and_another_does_not():
    first, again, other = run(mixed, 6), run(mixed, 6), run(mixed, 5, seed=1)
    assert params_of(first) == params_of(again)
    assert params_of(first)[4] != params_of(other)[4]


@pytest.mark.slow
def test_a_suggestion_depends_on_the_storage_and_not_on_what_the_sampler_has_seen():
    whole = run(parabola, 6)
    study = optuna.create_study(sampler=quick())
    study.add_trials(whole.get_trials()[:5])
    study.sampler = pickle.loads(pickle.dumps(copy.deepcopy(quick())))
    study.sampler.reseed_rng()
    study.optimize(parabola, n_trials=1)
    assert params_of(study)[-1] == params_of(whole)[-1]


@pytest.mark.slow
def test_maximizing_the_negative_suggests_the_same():
    low, high = run(parabola, 6), run(lambda trial: -parabola(trial), 6, direction="maximize")
    for one, other in zip(params_of(low), params_of(high), strict=True):
        assert one == pytest.approx(other, **within(judgement(absolute=1e-4)))


def corner(trial):
    """The sum of two numbers, which is to be at least one."""
    return trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("y", 0.0, 1.0)


def constrained_corner(trial):
    value = corner(trial)
    trial.set_constraint("0", 1.0 - value)
    return value


@pytest.mark.slow
@pytest.mark.thorough
def test_suggestions_keep_to_constraints():
    study = run(constrained_corner, 10, n_startup_trials=6, search=FAIR)
    # Without the constraint zero would be found at once.
    assert min(sum(params.values()) for params in params_of(study)[7:]) > 0.7
    assert 1.0 <= study.best_value < 1.2


@pytest.mark.slow
def test_constraints_by_either_convention_give_the_same_suggestions():
    by_trial = run(constrained_corner, 5)
    by_function = run(corner, 5, constraints_func=lambda trial: (1.0 - sum(trial.params.values()),))
    assert params_of(by_function) == params_of(by_trial)
    for one, other in zip(by_function.get_trials(), by_trial.get_trials(), strict=True):
        assert one.constraints == other.constraints


@pytest.mark.slow
def test_running_trials_are_not_repeated():
    study = run(parabola, 4)
    trials = [study.ask() for _ in range(2)]
    points = [(one.suggest_float("x", -1.0, 1.0), one.suggest_float("y", -1.0, 1.0)) for one in trials]
    for i, one in enumerate(points):
        for other in points[:i]:
            assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 0.01


@pytest.mark.slow
def test_failed_and_pruned_trials_do_not_stop_a_study():
    def objective(trial):
        value = parabola(trial)
        if trial.number % 4 == 1:
            raise RuntimeError("broken")
        trial.report(value, step=0)
        if trial.number % 4 == 2:
            raise optuna.TrialPruned
        return math.nan if trial.number % 4 == 3 else value

    study = run(objective, 8, catch=(RuntimeError,))
    states = [trial.state for trial in study.get_trials()]
    assert (states.count(TrialState.COMPLETE), states.count(TrialState.PRUNED)) == (2, 2)
    assert len({str(params) for params in params_of(study)}) == 8


@pytest.mark.slow
def test_parameters_of_a_branch_are_sampled_on_their_own():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if x < 0.5:
            return x + trial.suggest_int("left", 0, 9)
        return x + trial.suggest_float("right", 0.0, 1.0)

    study = run(objective, 7)
    assert all(trial.state == TrialState.COMPLETE for trial in study.get_trials())
    assert study.sampler.infer_relative_search_space(study, study.get_trials()[-1]).keys() == {"x"}


def test_parameters_with_one_value_need_no_suggestion():
    def objective(trial):
        return trial.suggest_int("n", 3, 3) + trial.suggest_categorical("c", [1])

    study = run(objective, 6)
    assert study.sampler.infer_relative_search_space(study, study.get_trials()[-1]) == {}


def test_an_independent_sampler_is_used_and_told_of_trials():
    class Watched(optuna.samplers.RandomSampler):
        calls: list = []  # noqa: RUF012 # shared on purpose

        def before_trial(self, study, trial):
            self.calls.append("before")

        def after_trial(self, study, trial, state, values):
            self.calls.append("after")

        def reseed_rng(self):
            self.calls.append("reseed")

    study = run(parabola, 2, independent_sampler=Watched(seed=0))
    study.sampler.reseed_rng()
    assert Watched.calls == ["before", "after"] * 2 + ["reseed"]


@pytest.mark.slow
def test_counts_and_noiseless_objectives_have_their_models():
    counts = run(lambda trial: float(round(30 * parabola(trial))), 5, likelihood=Poisson())
    exact = run(parabola, 8, deterministic_objective=True, search=FAIR)
    assert len(counts.get_trials()) == 5
    assert exact.best_value < 0.02


@pytest.mark.slow
def test_two_threads_share_a_database(tmp_path):
    study = run(mixed, 6, n_jobs=2, storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert [trial.state for trial in study.get_trials()] == [TrialState.COMPLETE] * 6
    assert len({str(params) for params in params_of(study)}) == 6


@pytest.mark.slow
@pytest.mark.thorough
def test_two_processes_share_a_database(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(study_name="shared", storage=url)
    code = (
        "import optuna, sys, time\n"
        "from streamgp.integrations.optuna import StreamGPSampler\n"
        "def objective(trial):\n"
        "    time.sleep(0.1)\n"
        "    return (trial.suggest_float('x', 0, 1) - 0.3) ** 2 + trial.suggest_int('n', 0, 50)\n"
        "study = optuna.load_study(study_name='shared', storage=sys.argv[1],\n"
        "    sampler=StreamGPSampler(seed=0, n_startup_trials=3))\n"
        "study.optimize(objective, n_trials=4)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE) for _ in range(2)]
    for process in running:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors.decode()
    trials = optuna.load_study(study_name="shared", storage=url).get_trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 8


@pytest.mark.slow
def test_the_dashboard_serves_a_study(tmp_path):
    dashboard = pytest.importorskip("optuna_dashboard", reason="needs the extra streamgp[optuna]")
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = run(mixed, 5, storage=storage, n_startup_trials=9)
    app = dashboard.wsgi(optuna.storages.RDBStorage(storage))
    status, body = get(app, f"/api/studies/{study._study_id}")
    assert status.startswith("200")
    shown = json.loads(body)
    assert [trial["state"] for trial in shown["trials"]] == ["Complete"] * 5
    assert {row["name"] for row in shown["intersection_search_space"]} == {"rate", "width", "depth", "share", "kind"}
    page, _ = get(app, f"/dashboard/studies/{study._study_id}")
    assert page.startswith("200")


def get(app, path):
    """Ask a WSGI application for a page, without a server."""
    answer = []
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http",
    }
    body = b"".join(app(environ, lambda status, headers, *rest: answer.append(status)))
    return answer[0], body


@pytest.mark.slow
def test_a_suggestion_that_cannot_be_computed_falls_back_to_the_design_and_says_so(monkeypatch):
    def broken(*args, **options):
        raise NumericalError("the matrix is hopeless")

    monkeypatch.setattr(sampler_module, "suggest", broken)
    with pytest.warns(StreamGPWarning, match="trial 4, so that a point of the initial design.*hopeless"):
        study = run(parabola, 5)
    monkeypatch.undo()
    designed = run(parabola, 5, n_startup_trials=9)
    assert params_of(study) == params_of(designed)


@pytest.mark.slow
@pytest.mark.thorough
def test_branin_is_minimized_better_than_at_random():
    def regret(sampler):
        study = optuna.create_study(sampler=sampler)
        study.optimize(branin, n_trials=22)
        return study.best_value - 0.397887

    random = [regret(optuna.samplers.RandomSampler(seed=seed)) for seed in range(10)]
    assert regret(StreamGPSampler(seed=0)) < 0.25 * sum(random) / len(random)


@pytest.mark.slow
def test_studies_of_several_objectives_are_sampled():
    study = optuna.create_study(
        directions=["minimize", "maximize"], sampler=StreamGPSampler(seed=0, n_startup_trials=4, search=QUICK)
    )

    def both(trial):
        x, kind = trial.suggest_float("x", 0.0, 1.0), trial.suggest_categorical("kind", ["a", "b"])
        return (x - 0.2) ** 2, -((x - 0.7) ** 2) + 0.1 * (kind == "b")

    study.optimize(both, n_trials=5)  # the last by hypervolume improvement
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 5
    assert len({str(trial.params) for trial in study.trials}) == 5
    assert study.best_trials


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"acquisition": "gibbon"},
            OptionError,
            "acquisition must be one of 'qnei', 'qei', 'qkg', 'thompson', .* but is 'gibbon'",
        ),
        ({"n_startup_trials": 0}, ValueRangeError, "n_startup_trials must be a whole number of at least 1"),
        ({"likelihood": "cauchy"}, OptionError, "likelihood must be one of"),
        ({"likelihood": "preference"}, OptionError, "likelihood is that of comparisons"),
        ({"seed": -1}, ValueRangeError, "seed must be a whole number of at least 0"),
        ({"num_inducing": 0}, ValueRangeError, "num_inducing must be a whole number"),
        (
            {"likelihood": "poisson", "deterministic_objective": True},
            OptionError,
            "says that there is no noise, but likelihood is 'poisson'",
        ),
    ],
)
def test_wrong_options_are_refused_at_once(options, error, message):
    with pytest.raises(error, match=message):
        StreamGPSampler(**options)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0.5, ArgumentTypeError, "must return a sequence of numbers, but returned a float"),
        (["high", None], ArgumentTypeError, r"a sequence of numbers, but returned \['high', None\]. Return a value"),
        ([1.0, math.nan], ValueRangeError, r"must return numbers, but returned \[1.0, nan\]"),
    ],
)
def test_wrong_constraints_are_refused(value, error, message):
    study = optuna.create_study(sampler=quick(constraints_func=lambda trial: value))
    with pytest.raises(error, match=message):
        study.optimize(parabola, n_trials=1)


def test_without_a_seed_two_samplers_differ():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        studies = [run(parabola, 2, seed=None) for _ in range(2)]
    assert params_of(studies[0]) != params_of(studies[1])


@pytest.mark.slow
@pytest.mark.thorough
def test_a_suggestion_takes_seconds_at_most():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: sum(trial.suggest_float(f"x{j}", 0.0, 1.0) ** 2 for j in range(6)), n_trials=60)
    study.sampler = StreamGPSampler(seed=0)
    began = time.process_time()
    study.ask().suggest_float("x0", 0.0, 1.0)
    assert time.process_time() - began < 10.0  # about one, without the checks of annotations
