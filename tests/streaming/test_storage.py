import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

from streamgp.errors import FileFormatError
from streamgp.storage import load, save
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.one_vs_rest import OneVsRest


def _settings(likelihood="gaussian", **options):
    return StreamSettings(likelihood, **{"num_inducing": 6, "warmup": 4, "refit": 12, "buffer_size": 10, **options})


def _rows(likelihood, num_rows=24):
    draw = torch.Generator().manual_seed(1)
    X = torch.rand(num_rows, 2, generator=draw, dtype=torch.float64)
    f = torch.sin(4 * X[:, 0]) + X[:, 1]
    noise = torch.randn(num_rows, generator=draw, dtype=torch.float64)
    counts = torch.poisson(f.exp(), generator=draw)
    return X, {"gaussian": f + 0.1 * noise, "bernoulli": (f + noise > 1).double()}.get(likelihood, counts)


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "poisson"])
def test_a_restored_learner_goes_on_to_the_last_bit(tmp_path, likelihood):
    X, y = _rows(likelihood)
    refit = "never" if likelihood == "poisson" else 12
    learner, _ = StreamLearner(_settings(likelihood, refit=refit)).learn(X[:6], y[:6])
    for start in range(6, 24, 3):
        save(learner, tmp_path / "file")
        restored = load(tmp_path / "file", kind=StreamLearner)
        part = slice(start, start + 3)
        assert torch.equal(restored.predict(X[part]).mean, learner.predict(X[part]).mean)
        learner, info = learner.learn(X[part], y[part])
        restored, restored_info = restored.learn(X[part], y[part])
        assert repr(info) == repr(restored_info)
        assert torch.equal(restored.predict(X).variance, learner.predict(X).variance)
    assert learner.anchor is not None
    assert bool(learner.refits) == (refit != "never")


def test_a_learner_is_restored_before_its_first_row(tmp_path):
    save(StreamLearner(_settings()), tmp_path / "file")
    X, y = _rows("gaussian", 5)
    restored, _ = load(tmp_path / "file").learn(X, y)
    learner, _ = StreamLearner(_settings()).learn(X, y)
    assert torch.equal(restored.predict(X).mean, learner.predict(X).mean)


def test_classes_are_restored_with_their_labels(tmp_path):
    X, y = _rows("gaussian", 20)
    labels = ["low" if value < 1 else "high" if value > 1.4 else "middle" for value in y.tolist()]
    classes, _ = OneVsRest(_settings("bernoulli")).learn(X, labels)
    save(classes, tmp_path / "file")
    restored = load(tmp_path / "file", kind=OneVsRest)
    assert restored.classes == classes.classes
    assert torch.equal(restored.predict(X), classes.predict(X))


def test_the_users_kernel_is_restored_with_what_was_frozen(tmp_path):
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    X, y = _rows("gaussian", 12)
    learner, _ = StreamLearner(_settings(kernel=kernel)).learn(X, y)
    save(learner, tmp_path / "file")
    kept = load(tmp_path / "file").settings.kernel
    assert not kept.base_kernel.raw_lengthscale.requires_grad
    assert kept.raw_outputscale.requires_grad


def test_a_damaged_file_is_refused(tmp_path):
    save(StreamLearner(_settings()), tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(content[: len(content) // 2])
    with pytest.raises(FileFormatError):
        load(tmp_path / "file")
