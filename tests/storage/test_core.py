"""Likelihoods in files."""

from dataclasses import fields

import pytest
import torch
from gpytorch import likelihoods as source
from gpytorch.constraints import GreaterThan
from gpytorch.priors import GammaPrior

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.likelihoods import (
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    Preference,
    StudentT,
    Volatility,
    from_gpytorch,
)
from streamgp.storage import load, register_module, save

LIKELIHOODS = [
    Bernoulli("probit", num_nodes=20),
    Binomial(torch.tensor([3.0, 5.0])),
    Gaussian(1 / 3, is_learned=False),
    Gaussian(torch.tensor(0.1, dtype=torch.float32)),
    NegativeBinomial(0.7, num_nodes=40),
    Poisson(torch.tensor([0.1, 1e-300, 7.3], dtype=torch.float64)),
    Preference(),
    StudentT(4.1, 0.37, is_learned=False),
    Volatility.random(torch.Generator().manual_seed(0)),
]


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda each: type(each).__name__)
def test_a_saved_likelihood_is_rebuilt_to_the_last_bit(tmp_path, likelihood):
    save(likelihood, tmp_path / "a")
    rebuilt = load(tmp_path / "a")
    assert type(rebuilt) is type(likelihood)
    for field in fields(likelihood):
        was, now = getattr(likelihood, field.name), getattr(rebuilt, field.name)
        if isinstance(was, torch.Tensor):
            assert was.dtype == now.dtype
            assert torch.equal(was, now)
        else:
            assert was == now


WRAPPED = [
    source.PoissonLikelihood(),
    source.BetaLikelihood(scale_constraint=GreaterThan(0.5)),
    source.LaplaceLikelihood(noise_prior=GammaPrior(2.0, 3.0)),
    source.NegativeBinomialLikelihood(num_failures_param=True),
    source.StudentTLikelihood(batch_shape=torch.Size([2])),
]


@pytest.mark.parametrize("module", WRAPPED, ids=lambda each: type(each).__name__)
def test_a_wrapped_likelihood_gives_the_same_densities_after_it_was_saved(tmp_path, module):
    likelihood = from_gpytorch(module, num_nodes=20)
    likelihood = likelihood.with_learnable({name: one + 0.3 for name, one in likelihood.learnable().items()})
    save(likelihood, tmp_path / "a")
    rebuilt = load(tmp_path / "a")
    f, y = torch.tensor([-0.7, 1.3]), torch.tensor([1.0, 2.0]) if rebuilt.outcome_kind == "count" else torch.ones(2) / 3
    assert torch.equal(rebuilt.log_density(f, y), likelihood.log_density(f, y))
    assert rebuilt.num_nodes == 20
    assert sorted(repr(rebuilt.module).splitlines()) == sorted(repr(module).splitlines())


class OwnLikelihood(source._OneDimensionalLikelihood):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, function_samples, *args, **kwargs):
        return torch.distributions.Laplace(function_samples, self.width)


def test_a_wrapped_likelihood_of_ones_own_is_saved_once_its_module_is_registered(tmp_path, monkeypatch):
    likelihood = from_gpytorch(OwnLikelihood(0.25))
    with pytest.raises(UnsupportedError, match=r"register_module\(OwnLikelihood, batch_shape=None\).*options="):
        save(likelihood, tmp_path / "a")
    monkeypatch.setattr("streamgp.storage.modules._FORMATS", {})
    register_module(OwnLikelihood, batch_shape=None, options=("width",))
    save(likelihood, tmp_path / "a")
    assert load(tmp_path / "a").module.width == 0.25


def test_a_wrapped_likelihood_whose_values_are_not_its_parameters_is_refused(tmp_path, rewrite):
    save(from_gpytorch(source.LaplaceLikelihood()), tmp_path / "a")

    def without_values(description, _):
        description["content"]["fields"]["values"]["items"] = []

    rewrite(tmp_path / "a", without_values)
    with pytest.raises(FileFormatError, match="parameters"):
        load(tmp_path / "a")


@pytest.mark.parametrize(
    "change",
    [
        {"class": "likelihoods.Evil"},
        {"fields": {"nothing": 1}},
        {"fields": {"noise_variance": -1.0}},
        {"fields": {"noise_variance": "a"}},
    ],
)
def test_a_damaged_description_is_refused(tmp_path, rewrite, change):
    save(Gaussian(0.5), tmp_path / "a")
    rewrite(tmp_path / "a", lambda description, _: description["content"].update(change))
    with pytest.raises(FileFormatError):
        load(tmp_path / "a")
