from pathlib import Path

from tests.support.completeness import covered_names
from tests.support.pool_laws import PoolLaws
from tests.support.sampling_laws import SamplingLaws

import streamgp.acquisition


def test_every_public_acquisition_function_has_a_law_suite():
    # What evidence is worth is not a function of one pool; tests/acquisition/test_evidence_value.py has its laws.
    functions = {name for name in streamgp.acquisition.__all__ if name.islower()} - {"value_evidence"}
    assert functions <= covered_names(Path(__file__).parent, (SamplingLaws, PoolLaws))
