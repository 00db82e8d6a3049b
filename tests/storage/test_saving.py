import io
import tracemalloc
import zipfile

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import GreaterThan, Interval, LessThan
from gpytorch.kernels import (
    AdditiveKernel,
    ConstantKernel,
    CosineKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
    SpectralMixtureKernel,
)
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES

import streamgp as sg
from streamgp.errors import FileFormatError, SaveError, UnsupportedError
from streamgp.storage import load, save

KERNELS = {
    "rbf": lambda b: RBFKernel(ard_num_dims=2, batch_shape=b),
    "matern": lambda b: ScaleKernel(MaternKernel(1.5, ard_num_dims=2, batch_shape=b), batch_shape=b),
    "rational quadratic": lambda b: RQKernel(batch_shape=b),
    "periodic": lambda b: PeriodicKernel(ard_num_dims=2, batch_shape=b),
    "cosine": lambda b: CosineKernel(active_dims=(0,), batch_shape=b) + RBFKernel(batch_shape=b),
    "linear": lambda b: LinearKernel(ard_num_dims=2, batch_shape=b) + RBFKernel(batch_shape=b),
    "polynomial": lambda b: PolynomialKernel(power=2, batch_shape=b) + RBFKernel(batch_shape=b),
    "constant": lambda b: ConstantKernel(batch_shape=b) * RBFKernel(batch_shape=b),
    "spectral mixture": lambda b: SpectralMixtureKernel(num_mixtures=3, ard_num_dims=2, batch_shape=b),
    "sum": lambda b: AdditiveKernel(RBFKernel(active_dims=(0,), batch_shape=b), MaternKernel(batch_shape=b)),
    "product": lambda b: ProductKernel(RBFKernel(batch_shape=b), ScaleKernel(MaternKernel(), batch_shape=b)),
    "bounded": lambda b: RBFKernel(lengthscale_constraint=Interval(0.1, 3.0), batch_shape=b),
    "bounded below": lambda b: ScaleKernel(
        RBFKernel(batch_shape=b), outputscale_constraint=GreaterThan(1e-3), batch_shape=b
    ),
    "bounded above": lambda b: RBFKernel(lengthscale_constraint=LessThan(3.0), batch_shape=b),
    "botorch": lambda b: get_covar_module_with_dim_scaled_prior(2, b),
}


def make(kernel, dtype=torch.float64, batch_shape=(), mean=None):
    torch.manual_seed(0)
    for parameter in kernel.parameters():
        parameter.data.add_(0.1 * torch.rand_like(parameter) + 0.1)
    Z = torch.rand(*batch_shape, 5, 2, dtype=dtype)
    gp = sg.SparseGP.from_prior(kernel, Z, mean=mean)
    X, y = torch.rand(*batch_shape, 7, 2, dtype=dtype), torch.randn(*batch_shape, 7, dtype=dtype)
    return gp.absorb(X, y, noise_variance=0.1, inducing="keep")[0], X


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("name", KERNELS)
def test_a_saved_file_predicts_identically(tmp_path, name, batch_shape, dtype):
    kernel = KERNELS[name](torch.Size(batch_shape))
    mean = gpytorch.means.ConstantMean(batch_shape=torch.Size(batch_shape))
    gp, X = make(kernel, dtype, batch_shape, mean)
    gp.save(tmp_path / "model.sgp")
    loaded = sg.load(tmp_path / "model.sgp")
    assert torch.equal(loaded.predict(X).mean, gp.predict(X).mean)
    assert torch.equal(loaded.predict(X).covariance, gp.predict(X).covariance)
    assert list(tmp_path.iterdir()) == [tmp_path / "model.sgp"]


def test_a_linear_mean_is_rebuilt(tmp_path):
    gp, X = make(RBFKernel(), mean=gpytorch.means.LinearMean(2))
    gp.save(tmp_path / "model.sgp")
    assert torch.equal(sg.load(tmp_path / "model.sgp").predict(X).mean, gp.predict(X).mean)


class OwnKernel(RBFKernel):
    pass


def test_a_kernel_that_is_not_known_by_name_is_passed_in(tmp_path):
    gp, X = make(OwnKernel(ard_num_dims=2))
    gp.save(tmp_path / "model.sgp")
    with pytest.raises(UnsupportedError, match=r"class OwnKernel.*streamgp.load\(path, kernel=\.\.\.\)"):
        sg.load(tmp_path / "model.sgp")
    loaded = sg.load(tmp_path / "model.sgp", kernel=OwnKernel(ard_num_dims=2))
    assert torch.equal(loaded.predict(X).mean, gp.predict(X).mean)
    with pytest.raises(FileFormatError, match="OwnKernel"):
        sg.load(tmp_path / "model.sgp", kernel=OwnKernel())


@pytest.mark.parametrize("num_bytes", [0, 10, 500, -30])
def test_a_damaged_file_is_refused_with_a_sentence(tmp_path, num_bytes):
    gp, _ = make(RBFKernel())
    path = tmp_path / "model.sgp"
    gp.save(path)
    path.write_bytes(path.read_bytes()[:num_bytes])
    with pytest.raises(FileFormatError, match="damaged"):
        sg.load(path)


def test_flipped_bytes_are_noticed(tmp_path):
    gp, _ = make(RBFKernel())
    path = tmp_path / "model.sgp"
    gp.save(path)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo(f"{PREFIX}.whitened_root.npy").header_offset
    content[start + 80] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="damaged"):
        sg.load(path)


def kernel_of(description):
    return process_of(description)["prior"]["fields"]["kernel"]


def process_of(description):
    return description["content"]["fields"]["sparse_process"]["fields"]


PREFIX = "content.sparse_process"


def damage(name, array):
    def change(_, parts):
        part = io.BytesIO()
        np.save(part, array)
        parts[f"{PREFIX}.{name}.npy"] = part.getvalue()

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d, _: d.update(format="other"), "object of streamgp"),
        (lambda d, _: d.update(version=99), "version"),
        (lambda d, _: d["content"].update({"class": "os.system"}), "known"),
        (lambda d, _: d["tensors"].remove(f"{PREFIX}.whitened_mean"), "tensors"),
        (lambda d, _: process_of(d).pop("whitened_mean"), r"SparseProcess lacks \['whitened_mean'\]"),
        (lambda d, _: process_of(d).update(more=1), "SparseProcess"),
        (lambda d, _: process_of(d).update(jitter=-1e-3), "jitter"),
        (lambda d, _: process_of(d).update(jitter=1e30), "jitter"),
        (lambda d, _: process_of(d).update(jitter={"$": "float", "value": "nan"}), "jitter is nan"),
        (lambda d, _: process_of(d).update(jitter="a"), "jitter"),
        (lambda d, _: kernel_of(d)["structure"].pop("options"), r"damaged.*KeyError: 'options'"),
        (lambda d, _: kernel_of(d)["structure"].update({"class": "Evil"}), "of class Evil"),
        (damage("whitened_mean", np.zeros((5, 2))), "whitened_mean"),
        (damage("whitened_mean", np.zeros(4)), "whitened_root"),
        (
            damage("inducing_points", np.zeros((4, 2))),
            "features",
        ),
        (damage("inducing_points", np.zeros((0, 2))), "inducing"),
        (damage("whitened_mean", np.full(5, np.nan)), "whitened_mean"),
        (damage("whitened_root", np.full((5, 5), np.inf)), "whitened_root"),
        (damage("whitened_root", np.zeros((5, 5), int)), "field whitened_root"),
        (damage("whitened_root", np.zeros((5, 5), np.float32)), "whitened_root is torch.float32"),
        (damage("prior.kernel.raw_lengthscale", np.full((1, 1), np.inf)), "raw_lengthscale"),
        (damage("prior.kernel.raw_lengthscale", np.zeros((1, 1), int)), "raw_lengthscale"),
        (damage("prior.kernel.raw_lengthscale", np.zeros((1, 7))), "or other shapes"),
    ],
)
def test_a_foreign_file_is_refused_with_a_sentence(tmp_path, rewrite, change, sentence):
    gp, _ = make(RBFKernel())
    gp.save(tmp_path / "model.sgp")
    rewrite(tmp_path / "model.sgp", change)
    with pytest.raises(FileFormatError, match=sentence):
        sg.load(tmp_path / "model.sgp")


def test_a_file_whose_carried_information_does_not_fit_is_refused(tmp_path, rewrite):
    gp, X = make(RBFKernel())
    gp, _ = gp.absorb(X[:1], X[:1, 0], noise_variance=0.1)
    gp.save(tmp_path / "model.sgp")
    rewrite(tmp_path / "model.sgp", damage("information", np.zeros(3)))
    with pytest.raises(FileFormatError, match="information"):
        sg.load(tmp_path / "model.sgp")


def test_a_file_of_another_kind_is_refused(tmp_path):
    gp, _ = make(RBFKernel())
    save(gp, tmp_path / "a")
    assert isinstance(load(tmp_path / "a", kind=sg.SparseGP), sg.SparseGP)
    with pytest.raises(FileFormatError, match="ConditionedGP"):
        load(tmp_path / "a", kind=sg.ConditionedGP)


def test_what_is_not_registered_is_refused_when_saved(tmp_path):
    with pytest.raises(UnsupportedError, match="register"):
        save(object(), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_conditioned_gp_comes_back(tmp_path):
    gp, X = make(RBFKernel())
    y = torch.tensor([1.0, 0.0, 2.0], dtype=X.dtype)
    conditioned = gp.condition(X[:3], y, likelihood=sg.likelihoods.Poisson())
    conditioned = conditioned.condition(X[3:5], torch.randn(4, 2, dtype=X.dtype), noise_variance=0.1)
    conditioned.save(tmp_path / "a")
    loaded = sg.load(tmp_path / "a")
    assert torch.equal(loaded.predict(X).covariance, conditioned.predict(X).covariance)
    assert torch.equal(loaded.predict(X).mean, conditioned.predict(X).mean)


def test_a_fit_comes_back(tmp_path):
    torch.manual_seed(0)
    X = torch.rand(20, 2, dtype=torch.float64)
    fitted = sg.fit(100.0 * X, 50.0 + X.sum(-1), num_inducing=5, standardize=True)
    fitted.save(tmp_path / "a")
    loaded = sg.load(tmp_path / "a")
    assert torch.equal(loaded.predict(100.0 * X).mean, fitted.predict(100.0 * X).mean)
    assert loaded.info == fitted.info
    assert loaded.frozen == fitted.frozen


def test_loading_takes_memory_for_little_more_than_the_file(tmp_path):
    path = tmp_path / "a"
    gp = sg.SparseGP.from_prior(RBFKernel(), torch.rand(600, 2, dtype=torch.float64))
    gp.save(path)
    tracemalloc.start()
    try:
        sg.load(path)
        peak = tracemalloc.get_traced_memory()[1]  # without what torch allocates: that is one copy of the tensors
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"There is no file .*nothing.sgp"):
        sg.load(tmp_path / "nothing.sgp")


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    gp, X = make(RBFKernel())
    path = tmp_path / "model.sgp"
    gp.save(path)

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        gp.save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert torch.equal(sg.load(path).predict(X).mean, gp.predict(X).mean)


def test_what_could_not_be_read_again_is_not_saved(tmp_path):
    gp = sg.SparseGP.from_prior(RBFKernel().double(), torch.zeros(1, 1, dtype=torch.float64))
    gp.save(tmp_path / "gp")
    before = (tmp_path / "gp").read_bytes()
    gp.kernel.initialize(lengthscale=1e39)  # which GPyTorch reads in single precision, where it is infinite
    with pytest.raises(SaveError, match=r"lengthscale.*not finite"):
        gp.save(tmp_path / "gp")
    assert (tmp_path / "gp").read_bytes() == before
    nan = gp.process.with_belief(torch.full((1,), torch.nan, dtype=torch.float64), gp.process.whitened_root)
    with pytest.raises(SaveError, match="whitened_mean"):
        sg.SparseGP(nan).save(tmp_path / "gp")


@pytest.mark.parametrize("content", [[1, 2], {"$": "dict", "items": []}, {"$": "list", "items": []}, 3, None])
def test_a_file_that_holds_no_object_is_refused(tmp_path, content, rewrite):
    sg.SparseGP.from_prior(RBFKernel(), torch.zeros(1, 1)).save(tmp_path / "gp")

    def change(description, parts):
        description.update(content=content, tensors=[])
        for part in [part for part in parts if part.endswith(".npy")]:
            del parts[part]

    rewrite(tmp_path / "gp", change)
    with pytest.raises(FileFormatError, match="object of streamgp"):
        sg.load(tmp_path / "gp")
