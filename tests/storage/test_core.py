"""Likelihoods in files."""

from dataclasses import fields

import pytest
import torch
from gpytorch.likelihoods import LaplaceLikelihood

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
from streamgp.storage import load, save

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


def test_a_wrapped_likelihood_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(UnsupportedError, match="is a WrappedLikelihood, and it is not known how to save one"):
        save(from_gpytorch(LaplaceLikelihood()), tmp_path / "a")


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
