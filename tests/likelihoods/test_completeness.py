from pathlib import Path

from tests.support.completeness import covered_names

import streamgp.likelihoods
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.multi_latent_laws import MultiLatentLaws


def test_every_public_likelihood_has_a_law_suite():
    functions = {"from_name", "names", "read_likelihood", "register"}
    public = {name for name in streamgp.likelihoods.__all__ if not name.startswith("Abstract")} - functions
    assert public <= covered_names(Path(__file__).parent, (LikelihoodLaws, MultiLatentLaws))


def test_every_public_likelihood_is_final_and_frozen():
    for name in streamgp.likelihoods.__all__:
        value = getattr(streamgp.likelihoods, name)
        if isinstance(value, type) and not name.startswith("Abstract"):
            assert value.__final__
            assert value.__dataclass_params__.frozen
