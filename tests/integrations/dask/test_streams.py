import numpy as np
import pytest
import torch

dask_array = pytest.importorskip("dask.array", reason="needs the extra streamgp[dask]")

import streamgp as sg  # noqa: E402
from streamgp.errors import ArgumentTypeError  # noqa: E402
from streamgp.integrations.dask import DaskStream  # noqa: E402
from streamgp.testing.tolerances import rounding  # noqa: E402


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(90, 1))
    return X, 5.0 + 2.0 * np.sin(X[:, 0]) + 0.1 * rng.standard_normal(90)


@pytest.fixture(scope="module")
def start(data):
    X, y = (torch.from_numpy(each[:30]) for each in data)
    return sg.fit(X, y, num_inducing=6, max_iterations=5, standardize=True)


def lazy(X, y):
    return dask_array.from_array(X, chunks=(7, 1)), dask_array.from_array(y, chunks=7)


def test_chunks_learned_apart_are_what_one_process_learns_of_all_rows(client, data, start):
    stream = DaskStream(start, client).learn(*lazy(data[0][30:], data[1][30:]))
    X, y = (torch.from_numpy(each[30:]) for each in data)
    scaling = start.scaling
    whole, _ = start.gp.absorb(scaling.inputs(X), scaling.targets(y), likelihood=start.likelihood, inducing="keep")
    ours, theirs = stream.gp.predict(scaling.inputs(X)), whole.predict(scaling.inputs(X))
    torch.testing.assert_close(ours.mean, theirs.mean, **rounding(ours.mean.dtype, condition=1e3))
    torch.testing.assert_close(ours.variance, theirs.variance, **rounding(ours.mean.dtype, condition=1e3))


def test_hyperparameters_of_a_refit_are_those_of_chunks_to_come(client, data, start):
    stream = DaskStream(start, client).learn(*lazy(data[0][30:50], data[1][30:50]))
    refitted = stream.refit(data[0][50:70], data[1][50:70], max_iterations=2)
    assert stream.gp is not refitted.gp
    ended = refitted.learn(*lazy(data[0][70:], data[1][70:]))
    assert ended.gp.inducing_points.equal(refitted.gp.inducing_points)
    X = torch.linspace(-2.5, 2.5, 9, dtype=torch.float64)[:, None]
    truth = 5.0 + 2.0 * torch.sin(X[:, 0])
    assert (ended.result.predict(X).mean - truth).abs().max() < 0.5
    assert ended.result.predict(X).variance.mean() < start.predict(X).variance.mean()


def test_what_is_not_a_fit_is_refused(start):
    with pytest.raises(ArgumentTypeError, match="what fit returned"):
        DaskStream(start.gp)
