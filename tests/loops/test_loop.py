"""What all loops share: threads, copies, predictions and models in the user's units."""

import copy
import os
import pickle
import threading
import warnings

import gpytorch
import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import Search, Thompson
from streamgp.errors import ConvergenceError, ShapeError, StreamGPWarning
from streamgp.testing.tolerances import judgement, tolerance, within

BOX = [(-5.0, 10.0), (0.0, 15.0)]
SMALL = Search(num_restarts=1, raw_samples=8, max_iterations=3)


def told(make, num_told=8):
    loop = make()
    X = loop.ask(num_told)
    loop.tell(X, X.double().reshape(len(X), -1).sum(-1))
    return loop


LOOPS = {
    "optimizer": lambda: sg.Optimizer(BOX, acquisition=Thompson(50), num_initial=4, search=SMALL),
    "trust region": lambda: sg.TurboOptimizer(BOX, acquisition=Thompson(50), num_initial=4, num_inducing=10),
    "exact": lambda: sg.TurboOptimizer(BOX, acquisition=Thompson(50), num_initial=4, model="exact"),
    "pool": lambda: sg.PoolLearner(torch.arange(60.0).reshape(30, 2), num_initial=4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_threads_get_different_points_and_lose_no_outcome(name):
    loop, asked, errors = LOOPS[name](), [], []
    gate = threading.Barrier(4)

    def work():
        try:
            gate.wait()
            for _ in range(2):
                X = loop.ask()
                asked.append(X)
                loop.tell(X, [0.5 * len(asked)])
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    assert len(torch.unique(torch.cat(asked), dim=0)) == 8
    assert len(loop.X) == 8
    assert len(loop.pending) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_the_model_and_predictions_are_in_the_users_units(name):
    loop = told(LOOPS[name])
    X = torch.arange(60.0, dtype=torch.float64).reshape(30, 2)[loop.X] if name == "pool" else loop.X
    prediction, posterior = loop.predict(X), loop.model().posterior(X)
    same = tolerance(torch.float64, scale=float(loop.y.abs().max()))
    assert_close(posterior.mean.squeeze(-1).detach(), prediction.mean, **same)
    assert_close(posterior.variance.sqrt().squeeze(-1).detach(), prediction.std, **same)
    assert (prediction.mean - loop.y[:, 0]).abs().mean() < 0.3 * loop.y.std()
    best = loop.best()
    assert best.mean == pytest.approx(float(prediction.mean.max()), **within(same))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["optimizer", "pool"])
def test_copies_and_pickles_go_on_as_the_original(name):
    loop = told(LOOPS[name])
    copies = [copy.copy(loop), copy.deepcopy(loop), pickle.loads(pickle.dumps(loop))]
    expected = loop.ask(2)
    for one in copies:
        assert torch.equal(one.ask(2), expected)


def test_a_single_point_may_be_told_by_its_numbers():
    loop = LOOPS["optimizer"]()
    loop.tell([1.0, 2.0], 70.0)
    assert loop.y.tolist() == [[70.0]]
    assert_close(loop.X, torch.tensor([[1.0, 2.0]], dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_outcomes_of_any_size_can_be_told(size):
    loop = LOOPS["optimizer"]()
    X = loop.ask(8)
    loop.tell(X, size * X.sum(-1))
    assert loop.ask().isfinite().all()
    assert loop.best().mean == pytest.approx(float(loop.y.max()), **within(judgement(relative=0.3)))


def test_what_was_told_is_a_table_that_can_be_corrected(tmp_path):
    space = {"dose": sg.Real(0.0, 1.0), "kind": sg.Categorical(["a", "b"])}
    loop = sg.Optimizer(space, constraints=[sg.Constraint(upper=1.0, name="heat")])
    loop.tell([{"dose": 0.5, "kind": "b"}, {"dose": 0.25, "kind": "a"}], [[1.0, 0.5], [float("nan"), 0.5]])
    loop.tell({"dose": 0.75, "kind": "a"}, [7.0, 0.1])
    loop.correct(2, [2.0, 0.1])
    loop.remove(0)
    loop.export(tmp_path / "runs.csv")
    again = sg.Optimizer(space, constraints=[sg.Constraint(upper=1.0, name="heat")])
    again.tell_csv(tmp_path / "runs.csv")
    for one in (loop, again):
        assert one.X == [{"dose": 0.25, "kind": "a"}, {"dose": 0.75, "kind": "a"}]
        assert one.y[1].tolist() == [2.0, 0.1]
        assert one.y[0].isnan().tolist() == [True, False]
    pytest.importorskip("pandas")
    assert list(loop.observations.columns) == ["dose", "kind", "objective", "heat"]
    with pytest.raises(sg.errors.ValueRangeError, match="row must be below 2"):
        loop.remove(2)
    with pytest.raises(sg.errors.FileFormatError, match="must have a column 'x0'"):
        sg.Optimizer(BOX).tell_csv(tmp_path / "runs.csv")
    with pytest.raises(sg.errors.UnsupportedError, match="has drawn conclusions"):
        LOOPS["trust region"]().remove(0)


def test_leftovers_among_pending_points_are_warned_of():
    loop = sg.Optimizer([(0.0, 1.0)] * 6)
    loop.ask(10)
    with pytest.warns(sg.errors.StreamGPWarning, match="10 points are pending, and none of those told now"):
        loop.tell(torch.zeros(1, 6), [1.0])


def test_a_likelihood_that_could_not_be_saved_is_named_before_anything_is_learned():
    class OwnLikelihood(gpytorch.likelihoods._OneDimensionalLikelihood):
        def forward(self, function_samples, *args, **kwargs):
            return torch.distributions.Laplace(function_samples, 0.2)

    own = sg.likelihoods.from_gpytorch(OwnLikelihood())
    sentence = r"learned of the objective 'objective' cannot be saved.*register_module\(OwnLikelihood"
    with pytest.warns(StreamGPWarning, match=sentence):
        sg.Optimizer([(0.0, 1.0)], likelihood=own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.Optimizer([(0.0, 1.0)], likelihood=sg.likelihoods.from_gpytorch(gpytorch.likelihoods.LaplaceLikelihood()))


def test_what_a_wrapped_likelihood_learned_is_saved(tmp_path):
    likelihood = sg.likelihoods.from_gpytorch(gpytorch.likelihoods.LaplaceLikelihood())
    optimizer = sg.Optimizer([(0.0, 1.0)], likelihood=likelihood, num_initial=3)
    optimizer.tell([[0.1], [0.5], [0.8], [0.9]], [0.2, 0.9, 0.4, 0.3])
    optimizer.predict([[0.4]])
    optimizer.save(tmp_path / "a")
    assert torch.equal(sg.load(tmp_path / "a").predict([[0.4]]).mean, optimizer.predict([[0.4]]).mean)


@pytest.mark.parametrize("make", [sg.Optimizer, sg.TurboOptimizer])
def test_outcomes_of_points_that_are_close_together_raise_no_warning_about_scales(make):
    X = 0.5 + 1e-3 * torch.rand(8, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    optimizer = make([(0.0, 1.0), (0.0, 1.0)], num_initial=4)
    optimizer.tell(X, X.sum(-1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", StreamGPWarning)
        optimizer.ask()


def test_a_pool_of_unscaled_inputs_is_warned_of_once_and_the_advice_works():
    X = 1e4 * torch.rand(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with pytest.warns(StreamGPWarning, match=r"far from unit scale.*Leave standardize at True, or scale pool_X"):
        learner = sg.PoolLearner(X, num_initial=3, standardize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StreamGPWarning)
        learner.tell(learner.ask(3), [1.0, 2.0, 3.0])
        learner.ask()
        sg.PoolLearner(X, num_initial=3)
        sg.PoolLearner(X / 1e4, num_initial=3, standardize=False)


def test_outcomes_that_no_model_explains_are_refused_with_advice_that_works():
    X, y = torch.rand(8, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64), torch.zeros(8)
    y[[3, 7]] = 1e15
    optimizer = sg.Optimizer([(0.0, 1.0)], likelihood="poisson", num_initial=3, search=SMALL)
    optimizer.tell(X, y)
    with pytest.raises(
        ConvergenceError, match=r"No model could be learned.*correct and remove.*as logarithms"
    ) as error:
        optimizer.ask()
    assert "SiteRule" not in str(error.value)
    assert "standardize" not in str(error.value)
    optimizer.correct(3, 1.0)
    optimizer.remove(7)
    optimizer.ask()
    logarithms = sg.Optimizer([(0.0, 1.0)], num_initial=3, search=SMALL)
    logarithms.tell(X, torch.log1p(y))
    logarithms.ask()


@pytest.mark.parametrize("make", [lambda **how: sg.Optimizer(BOX, **how), lambda **how: sg.PoolLearner(BOX, **how)])
def test_a_kernel_for_other_inputs_is_refused_when_it_begins(make):
    with pytest.raises(ShapeError, match=r"3 lengthscales .* inputs with 2 columns"):
        make(kernel=gpytorch.kernels.RBFKernel(ard_num_dims=3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_goes_on_while_a_thread_of_the_parent_holds_the_lock():
    loop, is_held, is_over = told(LOOPS["optimizer"], 4), threading.Event(), threading.Event()

    def hold():
        with loop._lock:
            is_held.set()
            is_over.wait(60.0)

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(60.0)
    child = os.fork()
    if child == 0:  # the child must not run what pytest does at its end
        os._exit(0 if loop._lock.acquire(timeout=5.0) else 1)
    _, status = os.waitpid(child, 0)
    is_over.set()
    holder.join()
    assert os.waitstatus_to_exitcode(status) == 0
