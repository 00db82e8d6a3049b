import pickle

import gpytorch
import pytest
import torch
from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
from gpytorch import kernels, means
from gpytorch.constraints import GreaterThan, Interval, LessThan, Positive
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior, HalfCauchyPrior, HalfNormalPrior, LogNormalPrior, NormalPrior, UniformPrior

import streamgp as sg
from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.gp.coregionalization import CoregionalizationKernel
from streamgp.storage.archive import ArchiveReader, write_archive
from streamgp.storage.codec import Decoder, Encoder
from streamgp.storage.modules import _FORMATS, describe_module, rebuild_module, register_module, state_of

# Base classes, kernels of several outputs, of distributions or of grids, and those that are deprecated: a sparse GP
# cannot be made of them.
NOT_SAVED = {
    "keops",
    "Kernel",
    "ArcKernel",
    "AdditiveStructureKernel",
    "CylindricalKernel",
    "MultiDeviceKernel",
    "DistributionalInputKernel",
    "GaussianSymmetrizedKLKernel",
    "GridKernel",
    "GridInterpolationKernel",
    "InducingPointKernel",
    "LCMKernel",
    "MultitaskKernel",
    "NewtonGirardAdditiveKernel",
    "PolynomialKernelGrad",
    "ProductStructureKernel",
    "RBFKernelGrad",
    "RBFKernelGradGrad",
    "SpectralDeltaKernel",
    "Matern52KernelGrad",
    "Mean",
    "ConstantMeanGrad",
    "ConstantMeanGradGrad",
    "LinearMeanGrad",
    "LinearMeanGradGrad",
    "MultitaskMean",
}
# What constructors need, for all others.
ARGUMENTS = {
    "PolynomialKernel": ({"power": 2}, {"power": 3}),
    "RFFKernel": ({"num_samples": 4, "num_dims": 3}, {"num_samples": 4, "num_dims": 3, "ard_num_dims": 3}),
    "SpectralMixtureKernel": ({"num_mixtures": 2}, {"num_mixtures": 2, "ard_num_dims": 3}),
    "IndexKernel": ({"num_tasks": 3}, {"num_tasks": 3, "rank": 2}),
    "HammingIMQKernel": ({"vocab_size": 2}, {"vocab_size": 3}),
    "LinearMean": ({"input_size": 3}, {"input_size": 3, "bias": False}),
    "MaternKernel": ({}, {"nu": 1.5, "ard_num_dims": 3}),
    "PiecewisePolynomialKernel": ({}, {"q": 3, "ard_num_dims": 3}),
    "CosineKernel": ({}, {"active_dims": (1,)}),
    "ConstantKernel": ({}, {"active_dims": (1,)}),
    "ZeroMean": ({}, {}),
    "ConstantMean": ({}, {"constant_constraint": Interval(-1.0, 2.0)}),
}
SIMPLE = sorted(({*kernels.__all__, *means.__all__} - NOT_SAVED) - {"ScaleKernel", "AdditiveKernel", "ProductKernel"})


def make(name, variant, batch_shape=()):
    cls = getattr(kernels, name, None) or getattr(means, name)
    options = ARGUMENTS.get(name, ({}, {"ard_num_dims": 3}))[variant]
    module = cls(batch_shape=torch.Size(batch_shape), **options)
    for parameter in module.parameters():
        parameter.data.add_(torch.rand_like(parameter))
    return module


def round_trip(module, tmp_path, **given):
    encoder = Encoder()
    node = encoder.encode(module, "content")
    write_archive(tmp_path / "file", {"node": node}, encoder.arrays)
    with ArchiveReader(tmp_path / "file") as reader:
        return Decoder(reader, modules=given).decode(reader.description["node"])


def assert_same(module, other):
    assert type(other) is type(module)
    assert sorted(repr(other).splitlines()) == sorted(repr(module).splitlines())
    state, other_state = module.state_dict(), other.state_dict()
    assert state.keys() == other_state.keys()
    for name in state:
        assert torch.equal(state[name], other_state[name]), name
        assert state[name].dtype == other_state[name].dtype, name
    flags = {name: parameter.requires_grad for name, parameter in module.named_parameters()}
    assert flags == {name: parameter.requires_grad for name, parameter in other.named_parameters()}


def test_every_class_of_gpytorch_is_saved_or_known_not_to_be():
    known = set(_FORMATS)
    assert set(SIMPLE) | {"ScaleKernel", "AdditiveKernel", "ProductKernel"} <= known
    assert not known & NOT_SAVED


@pytest.mark.parametrize("batch_shape", [(), (2,)])
@pytest.mark.parametrize("variant", [0, 1])
@pytest.mark.parametrize("name", SIMPLE)
def test_every_kernel_and_mean_comes_back(tmp_path, name, variant, batch_shape):
    torch.manual_seed(0)
    module = make(name, variant, batch_shape)
    assert_same(module, round_trip(module, tmp_path))
    assert_same(module.double(), round_trip(module, tmp_path).double())


@pytest.mark.parametrize(
    "module",
    [
        ScaleKernel(RBFKernel() * kernels.PeriodicKernel()) + kernels.LinearKernel(ard_num_dims=2),
        ScaleKernel(ScaleKernel(kernels.MaternKernel(0.5, active_dims=(1, 2))) + RBFKernel(active_dims=(0,))),
        kernels.IndexKernel(num_tasks=3, rank=2) * RBFKernel(),
        ScaleKernel(
            RBFKernel(active_dims=(0, 1)) * kernels.IndexKernel(num_tasks=3, rank=2, active_dims=(2,))
            + ScaleKernel(kernels.SpectralMixtureKernel(num_mixtures=2, ard_num_dims=3) * kernels.PeriodicKernel())
        )
        * (kernels.LinearKernel() + kernels.ConstantKernel()),
        CoregionalizationKernel(
            ScaleKernel(kernels.SpectralMixtureKernel(num_mixtures=2) + kernels.PeriodicKernel()),
            RBFKernel() * kernels.LinearKernel(),
            num_outputs=3,
        ),
        RBFKernel(lengthscale_constraint=Interval(0.1, 3.0)),
        RBFKernel(ard_num_dims=2, lengthscale_constraint=Interval(torch.tensor([0.1, 0.2]), torch.tensor([3.0, 4.0]))),
        ScaleKernel(RBFKernel(), outputscale_constraint=GreaterThan(1e-3, transform=None)).double(),
        RBFKernel(lengthscale_constraint=LessThan(3.0)),
        get_matern_kernel_with_gamma_prior(3),
    ],
)
def test_compositions_and_constraints_come_back(tmp_path, module):
    assert_same(module, round_trip(module, tmp_path))


@pytest.mark.parametrize(
    "prior",
    [
        GammaPrior(2.0, 0.3),
        LogNormalPrior(torch.tensor([0.1, 0.2]), torch.tensor([1.0, 2.0])),
        NormalPrior(0.0, 1.5),
        HalfCauchyPrior(2.0),
        HalfNormalPrior(2.0),
    ],
)
def test_priors_come_back(tmp_path, prior):
    kernel = RBFKernel(ard_num_dims=2, lengthscale_prior=prior)
    ((name, owner, other, closure, setting),) = round_trip(kernel, tmp_path).named_priors()
    assert name == "lengthscale_prior"
    assert torch.equal(closure(owner), kernel.lengthscale)
    assert torch.equal(other.log_prob(closure(owner)), prior.log_prob(kernel.lengthscale))
    setting(owner, torch.tensor([[0.5, 2.0]]))
    assert torch.allclose(owner.lengthscale, torch.tensor([[0.5, 2.0]]))


def test_priors_that_cannot_be_rebuilt_are_left_out_only_where_nothing_is_learned(tmp_path):
    kernel = RBFKernel(lengthscale_prior=UniformPrior(0.0, 5.0))
    with pytest.raises(UnsupportedError, match="RBFKernel"):
        round_trip(kernel, tmp_path)
    assert not list(round_trip(kernel.requires_grad_(False), tmp_path).named_priors())
    own = RBFKernel(lengthscale_constraint=Positive(transform=torch.exp, inv_transform=torch.log))
    assert describe_module(own) is None
    own = RBFKernel()
    own.register_prior("lengthscale_prior", GammaPrior(1.0, 1.0), lambda kernel: kernel.lengthscale.log())
    assert describe_module(own) is None


def test_frozen_parameters_stay_frozen(tmp_path):
    module = ScaleKernel(RBFKernel())
    module.base_kernel.raw_lengthscale.requires_grad_(False)
    assert_same(module, round_trip(module, tmp_path))


class OwnKernel(RBFKernel):
    def __init__(self, flavor="plain", **options):
        super().__init__(**options)
        self.flavor = flavor


def test_a_kernel_of_ones_own_is_passed_in_or_registered(tmp_path, monkeypatch):
    module = ScaleKernel(OwnKernel("odd", ard_num_dims=2))
    with pytest.raises(UnsupportedError, match="register_module"):
        round_trip(module, tmp_path)
    given = round_trip(module, tmp_path, kernel=ScaleKernel(OwnKernel("odd", ard_num_dims=2)))
    assert_same(module, given)
    with pytest.raises(FileFormatError, match="ScaleKernel"):
        round_trip(module, tmp_path, kernel=OwnKernel())
    monkeypatch.setattr("streamgp.storage.modules._FORMATS", {})
    register_module(ScaleKernel, parts=("base_kernel",))
    register_module(OwnKernel, options=("flavor",), sizes=("ard_num_dims",))
    assert round_trip(module, tmp_path).base_kernel.flavor == "odd"


GAMMA = describe_module(RBFKernel(lengthscale_prior=GammaPrior(3.0, 6.0)))["priors"]["lengthscale"]


def nested(depth):
    structure, outer = describe_module(RBFKernel()), describe_module(ScaleKernel(RBFKernel()))
    for _ in range(depth):
        structure = outer | {"parts": {"base_kernel": structure}}
    return structure


def changed(module, **options):
    return describe_module(module) | options


@pytest.mark.slow
@pytest.mark.parametrize(
    ("structure", "sentence"),
    [
        (nested(300), "levels"),
        (
            changed(kernels.AdditiveKernel(), parts=dict.fromkeys((f"kernels.{i}" for i in range(3000)), nested(0))),
            "2000 parts",
        ),
        (changed(RBFKernel(), options={"ard_num_dims": 400_000_000}), "RBFKernel"),
        (changed(RBFKernel(), batch_shape=[400_000_000]), "declares a RBFKernel"),
        (changed(RBFKernel(), options={"ard_num_dims": -1}), "declares"),
        (changed(RBFKernel(), options={"ard_num_dims": 2.5}), "declares"),
        (changed(means.ZeroMean(), batch_shape=[400_000_000]), "declares a ZeroMean"),
        (changed(RBFKernel(), options={"evil": 1}), "options"),
        (changed(RBFKernel(), parts={"base": nested(0)}), "RBFKernel"),
        ({"class": "Evil", "parts": {}}, "of class Evil"),
        (
            changed(RBFKernel(), priors={"lengthscale": GAMMA | {"arguments": [1.0]}}),
            "with other arguments",
        ),
    ],
)
def test_a_hostile_structure_is_refused_at_once(structure, sentence):
    with pytest.raises((FileFormatError, TypeError), match=sentence):
        rebuild_module(structure, {"raw_lengthscale": (1, 1)} if "Mean" not in structure["class"] else {})


def test_state_leaves_out_what_the_structure_says():
    assert list(state_of(gpytorch.kernels.RBFKernel(active_dims=(0,)))) == ["raw_lengthscale"]


def test_an_optimizer_can_be_pickled_after_it_has_made_a_model_and_after_it_was_read_from_a_file(tmp_path):
    optimizer = sg.Optimizer([(0.0, 1.0), (0.0, 1.0)], seed=1)
    optimizer.tell([[0.1, 0.2], [0.5, 0.9], [0.9, 0.4], [0.3, 0.7]], [1.0, 2.0, 0.5, 1.5])
    expected = optimizer.predict([[0.2, 0.2]]).mean
    optimizer.save(tmp_path / "optimizer")
    for each in (optimizer, sg.load(tmp_path / "optimizer")):
        assert torch.equal(pickle.loads(pickle.dumps(each)).predict([[0.2, 0.2]]).mean, expected)
