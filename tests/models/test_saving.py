import pytest
import torch
from botorch.models import ModelListGP
from botorch.models.transforms.input import (
    ChainedInputTransform,
    FilterFeatures,
    InputStandardize,
    Log10,
    Normalize,
    Warp,
)
from botorch.models.transforms.outcome import Bilog, ChainedOutcomeTransform, Log, Power, Standardize
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

import streamgp as sg
from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.models import OnlineGP


def data(seed=0, num_outputs=2, n=12):
    torch.manual_seed(seed)
    X = 0.1 + torch.rand(n, 3, dtype=torch.float64)
    return X, torch.stack([(X**k).sum(-1) for k in range(1, num_outputs + 1)], -1)


def make(seed=0, **options):
    X, Y = data(seed)
    return OnlineGP.fit(X, Y, num_inducing=5, max_iterations=2, **options)


def assert_same(first, second, X):
    draws = []
    for model in (first, second):  # not all transforms of outcomes have moments
        torch.manual_seed(0)
        draws.append(model.posterior(X).rsample(torch.Size([2])))
    assert torch.equal(*draws)


INPUTS = {
    "none": lambda: None,
    "normalize": lambda: Normalize(3),
    "bounds": lambda: Normalize(3, indices=[0, 2], bounds=torch.tensor([[0.0, 0.0], [2.0, 3.0]], dtype=torch.float64)),
    "standardize": lambda: InputStandardize(3, indices=[1]),
    "log": lambda: Log10([1]),
    "chain": lambda: ChainedInputTransform(first=Log10([0]), second=Normalize(3)),
    "warp": lambda: Warp(3, [0, 1]).eval(),
}
OUTCOMES = {
    "none": lambda: None,
    "standardize": lambda: Standardize(2, outputs=[1]),
    "log": lambda: Log(),
    "bilog": lambda: Bilog(),
    "chain": lambda: ChainedOutcomeTransform(first=Power(0.5), second=Standardize(2)),
}


@pytest.mark.parametrize(
    ("into", "out"), [*((name, "standardize") for name in INPUTS), *(("none", n) for n in OUTCOMES)]
)
def test_a_model_comes_back_with_its_transforms(tmp_path, into, out):
    model = make(input_transform=INPUTS[into](), outcome_transform=OUTCOMES[out]())
    X, _ = data(1)
    model.save(tmp_path / "a")
    loaded = sg.load(tmp_path / "a")
    assert_same(loaded, model, X)
    assert loaded.fit_info == model.fit_info
    again, Y = data(2)
    assert_same(loaded.absorb(again, Y), model.absorb(again, Y), X)


def test_a_conditioned_model_of_counts_comes_back(tmp_path):
    X, Y = data(num_outputs=1)
    model = OnlineGP.fit(X, Y.round(), likelihood=sg.likelihoods.Poisson(), num_inducing=5, scale="response")
    model = model.condition_on_observations(X[:2], Y[:2].round())
    model.save(tmp_path / "a")
    loaded = OnlineGP.load(tmp_path / "a")
    assert loaded.scale == "response"
    assert torch.equal(loaded.posterior(X).mean, model.posterior(X).mean)


@pytest.mark.slow
def test_another_file_or_a_transform_that_cannot_be_rebuilt_is_refused(tmp_path):
    make().gps[0].save(tmp_path / "a")
    with pytest.raises(FileFormatError, match="SparseGP"):
        OnlineGP.load(tmp_path / "a")
    model = make(input_transform=FilterFeatures(torch.tensor([0, 1])))
    with pytest.raises(UnsupportedError, match="input_transform"):
        model.save(tmp_path / "a")


@pytest.mark.slow
def test_the_state_is_complete():
    X, _ = data(3)
    first, second = make(0), make(1)
    assert not torch.equal(first.posterior(X).mean, second.posterior(X).mean)
    second.load_state_dict(first.state_dict())
    assert_same(first, second, X)
    assert torch.equal(second.likelihood.noise, first.likelihood.noise)


@pytest.mark.slow
def test_the_state_is_complete_within_a_list_of_models():
    X, _ = data(3)
    first, second = (ModelListGP(make(seed).subset_output([0]), make(seed + 1).subset_output([1])) for seed in (0, 5))
    second.load_state_dict(first.state_dict())
    assert torch.equal(second.posterior(X).mean, first.posterior(X).mean)


@pytest.mark.slow
def test_a_state_that_does_not_fit_is_refused():
    X, _ = data(3)
    model = make(0)
    state = model.state_dict()
    name = next(key for key in state if key.endswith("whitened_mean"))
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({key: value for key, value in state.items() if "description" not in key})
    with pytest.raises(FileFormatError, match=r"The state does not fit .*whitened_mean"):
        model.load_state_dict({key: value for key, value in state.items() if key != name})
    with pytest.raises(FileFormatError, match="whitened_root"):
        model.load_state_dict({**state, name: torch.zeros(3, dtype=torch.float64)})
    with pytest.raises(FileFormatError, match="outputs"):
        OnlineGP(model.gps[0]).load_state_dict({key: value for key, value in state.items() if "transform" not in key})
    other = make(0, kernel=ScaleKernel(MaternKernel(ard_num_dims=3)) + RBFKernel())
    other.load_state_dict(state)  # whatever its kernel was
    assert_same(other, model, X)


@pytest.mark.slow
def test_a_warp_is_learned_for_one_output_or_used_as_it_is():
    X, Y = data()
    with pytest.raises(UnsupportedError, match="Warp"):
        OnlineGP.fit(X, Y, input_transform=Warp(3, [0, 1, 2]))
    with pytest.raises(UnsupportedError, match=r"parameters warp\.concentration0"):
        OnlineGP.fit(X, Y, input_transform=ChainedInputTransform(a=Normalize(3), warp=Warp(3, [0, 1, 2])))
    frozen = OnlineGP.fit(X, Y, num_inducing=5, input_transform=Warp(3, [0]).requires_grad_(False))
    assert frozen.posterior(X).mean.shape == Y.shape
