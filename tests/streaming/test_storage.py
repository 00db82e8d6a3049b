import json

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.gp.archive import read_archive, write_archive
from streamgp.likelihoods import Gaussian, Poisson, from_gpytorch
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.storage import pack_learner, unpack_learner

NUM_ROWS = 24
LIKELIHOODS = ["gaussian", "student_t", "poisson", "negative_binomial", "binomial", "bernoulli"]


def settings(likelihood="gaussian", **options):
    chosen = {"num_inducing": 6, "warmup": 4, "refit": 12, "buffer_size": 10, **options}
    return StreamSettings(likelihood=likelihood, **chosen)


def rows(likelihood, num_rows=NUM_ROWS):
    draw = torch.Generator().manual_seed(1)
    X = torch.rand(num_rows, 2, generator=draw, dtype=torch.float64)
    f = torch.sin(4 * X[:, 0]) + X[:, 1]
    noise = torch.randn(num_rows, generator=draw, dtype=torch.float64)
    totals = torch.full((num_rows,), 5.0, dtype=torch.float64) if likelihood == "binomial" else None
    counts = torch.poisson(f.exp(), generator=draw)
    targets = {"bernoulli": (f + noise > 1).double(), "binomial": counts.clamp(max=5.0)}
    return X, targets.get(likelihood, f + 0.1 * noise if likelihood in ("gaussian", "student_t") else counts), totals


def reopened(learner, path, kernel=None):
    description, tensors = pack_learner(learner)
    write_archive(path, {"format": "test", "version": 1, **description}, tensors)
    return unpack_learner(*read_archive(path, format="test", version=1), kernel=kernel)


def assert_goes_on_identically(learner, X, y, *, path, totals=None, kernel=None, block=1):
    """Two learners see a stream; one of them is saved and loaded on the way, several times."""
    restored = reopened(learner, path, kernel)
    for start in range(0, len(X), block):
        part = slice(start, start + block)
        counts = () if totals is None else (totals[part],)
        if learner.num_dims is not None:
            ours, theirs = restored.predict(X[part], *counts), learner.predict(X[part], *counts)
            assert torch.equal(ours.mean, theirs.mean)
            assert torch.equal(ours.variance, theirs.variance)
        learner, info = learner.learn(X[part], y[part], *counts)
        restored, restored_info = restored.learn(X[part], y[part], *counts)
        assert repr(info) == repr(restored_info)
        if start % 5 == 0:
            restored = reopened(restored, path, kernel)
    return learner, restored


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_restored_learner_goes_on_to_the_last_bit(tmp_path, likelihood):
    X, y, totals = rows(likelihood)
    first = [each if each is None else each[:6] for each in (X, y, totals)]
    rest = [each if each is None else each[6:] for each in (X, y, totals)]
    # Refits of these two take seconds, and show nothing that those of the others do not.
    refit = "never" if likelihood in ("student_t", "negative_binomial") else 12
    learner, _ = StreamLearner(settings(likelihood, refit=refit)).learn(*first)
    learner, restored = assert_goes_on_identically(learner, *rest[:2], totals=rest[2], path=tmp_path / "file")
    assert bool(learner.refits) == (refit != "never")
    assert learner.anchor is not None
    assert restored.num_seen == NUM_ROWS
    assert (restored.num_since_start, restored.next_refit) == (learner.num_since_start, learner.next_refit)


@pytest.mark.slow
def test_a_learner_is_restored_to_the_last_bit_in_its_warm_up(tmp_path):
    X, y, _ = rows("gaussian", 9)
    assert_goes_on_identically(StreamLearner(settings(warmup=8)), X, y, path=tmp_path / "file")


@pytest.mark.slow
def test_a_learner_with_a_half_life_and_growing_size_goes_on_to_the_last_bit(tmp_path):
    X, y, _ = rows("gaussian")
    options = settings("gaussian", num_inducing="auto", max_inducing=12, half_life=40.0)
    assert_goes_on_identically(StreamLearner(options), X, y, path=tmp_path / "file", block=3)


@pytest.mark.slow
def test_classes_that_come_late_go_on_to_the_last_bit(tmp_path):
    X, f, _ = rows("gaussian")
    labels = ["low" if value < 1 else np.str_("high") if row < 10 else "late" for row, value in enumerate(f.tolist())]
    learner, restored = OneVsRest(settings("bernoulli")), OneVsRest(settings("bernoulli"))
    for start in range(0, NUM_ROWS, 4):
        part = slice(start, start + 4)
        if start:
            assert torch.equal(learner.predict(X[part]), restored.predict(X[part]))
        learner, _ = learner.learn(X[part], labels[part])
        restored = reopened(restored.learn(X[part], labels[part])[0], tmp_path / "file")
    assert restored.classes == learner.classes
    assert set(restored.classes) == {"low", "high", "late"}


def warm(kernel, likelihood="gaussian"):
    X, y, _ = rows("gaussian", 16)
    return StreamLearner(settings(likelihood, kernel=kernel)).learn(X, y)[0], X, y


def frozen_kernel():
    kernel = ScaleKernel(MaternKernel(1.5, ard_num_dims=2))
    kernel.raw_outputscale.requires_grad_(False)
    return kernel


@pytest.mark.slow
def test_a_kernel_that_was_given_keeps_its_values_and_what_is_frozen(tmp_path):
    learner, X, y = warm(frozen_kernel())
    restored = reopened(learner, tmp_path / "file")
    kernel = restored.settings.kernel
    assert {name: each.requires_grad for name, each in kernel.named_parameters()} == {
        "raw_outputscale": False,
        "base_kernel.raw_lengthscale": True,
    }
    assert all(
        torch.equal(a, b) for a, b in zip(kernel.parameters(), learner.settings.kernel.parameters(), strict=True)
    )
    assert_goes_on_identically(learner, X, y, path=tmp_path / "file", block=8)


class OwnKernel(RBFKernel):
    pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [lambda: OwnKernel(), lambda: RBFKernel(lengthscale_prior=GammaPrior(3.0, 6.0))],
    ids=["class of its own", "priors"],
)
def test_a_kernel_that_cannot_be_described_is_passed_at_load(tmp_path, make):
    learner, X, y = warm(make())
    with pytest.raises(
        UnsupportedError, match=r"kernel of class .*Kernel that cannot be .* Pass one of the same struc"
    ):
        reopened(learner, tmp_path / "file")
    with pytest.raises(FileFormatError, match="Pass a kernel of the structure that was saved"):
        reopened(learner, tmp_path / "file", ScaleKernel(RBFKernel()))
    assert_goes_on_identically(learner, X, y, path=tmp_path / "file", kernel=make(), block=4)


@pytest.mark.parametrize("likelihood", [Gaussian(0.3, is_learned=False), Poisson(2.5)])
def test_a_likelihood_that_was_given_is_kept(tmp_path, likelihood):
    restored = reopened(StreamLearner(settings(likelihood)), tmp_path / "file")
    assert type(restored.settings.likelihood) is type(likelihood)
    for name, value in vars(likelihood).items():
        assert getattr(restored.settings.likelihood, name) == value


def test_a_learner_before_its_first_row_is_restored(tmp_path):
    restored = reopened(StreamLearner(settings("poisson", refit="never", half_life=7.5)), tmp_path / "file")
    assert restored.model is None
    assert restored.buffer is None
    assert restored.next_refit == 1
    assert (restored.settings.refit, restored.settings.half_life) == ("never", 7.5)
    empty = reopened(OneVsRest(settings("bernoulli")), tmp_path / "file")
    assert empty.classes == ()


def test_what_cannot_be_saved_is_refused():
    wrapped = from_gpytorch(gpytorch.likelihoods.LaplaceLikelihood())
    with pytest.raises(UnsupportedError, match="WrappedLikelihood cannot be saved"):
        pack_learner(StreamLearner(settings(wrapped)))
    with pytest.raises(UnsupportedError, match=r"label \(1, 2\) cannot be saved, as it is a tuple"):
        pack_learner(OneVsRest(settings("bernoulli"), classes=((1, 2),)))


@pytest.mark.parametrize("missing", ["settings", "counters", "refits"])
def test_an_incomplete_description_is_refused(missing):
    description, tensors = pack_learner(StreamLearner(settings()))
    description = json.loads(json.dumps(description))
    del description[missing]
    with pytest.raises(FileFormatError, match=f"description of the stream is not complete: KeyError..{missing}"):
        unpack_learner(description, tensors)
