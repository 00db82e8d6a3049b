import pytest
import torch

from streamgp import likelihoods
from streamgp.errors import ArgumentTypeError, OptionError
from streamgp.likelihoods import (
    AbstractLikelihood,
    AbstractMultiLatentLikelihood,
    Binomial,
    Gaussian,
    Poisson,
    from_name,
    names,
    read_likelihood,
)


def test_every_public_likelihood_has_a_name_that_makes_it():
    classes = [getattr(likelihoods, each) for each in likelihoods.__all__]
    for cls in classes:
        if (
            isinstance(cls, type)
            and not cls.__name__.startswith("Abstract")
            and not issubclass(cls, AbstractMultiLatentLikelihood)
        ):
            assert type(from_name(cls.name)) is cls
            assert cls.name in names()


def test_an_unknown_name_raises_a_sentence():
    with pytest.raises(OptionError, match="poisson"):
        from_name("fish")


def test_objects_are_read_as_they_are():
    likelihood = Poisson(2.0)
    assert read_likelihood(likelihood) is likelihood
    assert isinstance(read_likelihood("gaussian"), Gaussian)
    with pytest.raises(ArgumentTypeError, match="NoneType"):
        read_likelihood(None)


def test_names_can_be_asked_for_by_kind():
    assert "preference" not in names(num_inputs=1)
    assert "volatility" not in names(has_response=True)
    assert {"bernoulli", "gaussian", "poisson"} <= set(names(num_inputs=1, has_response=True))


def test_a_class_is_registered_once_under_its_name():
    class Unnamed(AbstractLikelihood):
        def log_density(self, f, y):
            return f

        def response(self, f):
            return f

    class Other(Unnamed):
        name = "poisson"

    with pytest.raises(OptionError, match="Unnamed"):
        likelihoods.register(Unnamed)
    with pytest.raises(OptionError, match="poisson"):
        likelihoods.register(Other)
    assert likelihoods.register(Poisson) is Poisson


def test_a_binomial_by_name_takes_its_totals_as_row_data():
    totals = torch.tensor([3.0, 9.0], dtype=torch.float64)
    likelihood = from_name("binomial").with_row_data(totals)
    assert isinstance(likelihood, Binomial)
    assert torch.equal(likelihood.total_count, totals)
