import json
import zipfile

import gpytorch
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

import streamgp as sg
from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.testing.conditioning_laws import BATCH_SHAPES, DTYPES

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
    with pytest.raises(FileFormatError, match="Pass a kernel of the structure that was saved, a OwnKernel"):
        sg.load(tmp_path / "model.sgp", kernel=OwnKernel())


@pytest.mark.parametrize("num_bytes", [0, 10, 500, -30])
def test_a_damaged_file_is_refused_with_a_sentence(tmp_path, num_bytes):
    gp, _ = make(RBFKernel())
    path = tmp_path / "model.sgp"
    gp.save(path)
    path.write_bytes(path.read_bytes()[:num_bytes])
    with pytest.raises(FileFormatError, match=r"model.sgp is damaged or was not written by streamgp"):
        sg.load(path)


def test_flipped_bytes_are_noticed(tmp_path):
    gp, _ = make(RBFKernel())
    path = tmp_path / "model.sgp"
    gp.save(path)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("whitened_root.npy").header_offset
    content[start + 80] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="damaged"):
        sg.load(path)


def rewrite(path, change):
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(parts["description.json"])
    change(description, parts)
    parts["description.json"] = json.dumps(description).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d, _: d.update(format="other"), "does not hold a streamgp.SparseGP, but 'other'"),
        (lambda d, _: d.update(version=99), "has format version 99, but this version of streamgp reads 1"),
        (lambda d, _: d["tensors"].remove("whitened_mean"), r"lacks the tensors \['whitened_mean'\]"),
        (lambda d, _: d["modules"]["kernel"]["description"].pop("options"), "description of the kernel or mean is not"),
        (lambda d, _: d["modules"]["kernel"]["description"].update({"class": "Evil"}), "of class Evil"),
        (lambda _, p: p.update({"whitened_mean.npy": p["inducing_points.npy"]}), "do not fit together"),
    ],
)
def test_a_foreign_file_is_refused_with_a_sentence(tmp_path, change, sentence):
    gp, _ = make(RBFKernel())
    gp.save(tmp_path / "model.sgp")
    rewrite(tmp_path / "model.sgp", change)
    with pytest.raises((FileFormatError, UnsupportedError), match=sentence):
        sg.load(tmp_path / "model.sgp")


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
