import pytest

from streamgp.likelihoods import AbstractLikelihood


def test_the_abstract_likelihood_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        AbstractLikelihood()
