import json
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
from streamgp.likelihoods.description import describe_likelihood, rebuild_likelihood

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
def test_a_described_likelihood_is_rebuilt_to_the_last_bit(likelihood):
    rebuilt = rebuild_likelihood(json.loads(json.dumps(describe_likelihood(likelihood))))
    assert type(rebuilt) is type(likelihood)
    for field in fields(likelihood):
        was, now = getattr(likelihood, field.name), getattr(rebuilt, field.name)
        if isinstance(was, torch.Tensor):
            assert was.dtype == now.dtype
            assert torch.equal(was, now)
        else:
            assert was == now


def test_a_wrapped_likelihood_is_refused_with_a_sentence():
    with pytest.raises(UnsupportedError, match=r"class WrappedLikelihood cannot be saved.*Bernoulli, Beta, Binomial"):
        describe_likelihood(from_gpytorch(LaplaceLikelihood()))


@pytest.mark.parametrize(
    "described",
    [
        {},
        {"class": "Evil", "values": {}},
        {"class": "Gaussian", "values": {"nothing": 1}},
        {"class": "Gaussian", "values": {"noise_variance": {"dtype": "float64", "numbers": -1.0}}},
    ],
)
def test_a_damaged_description_is_refused(described):
    with pytest.raises(FileFormatError, match="description of the likelihood is not complete"):
        rebuild_likelihood(described)
