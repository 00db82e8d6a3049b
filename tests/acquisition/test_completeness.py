from pathlib import Path

import streamgp.acquisition
from streamgp.testing.completeness import covered_names
from streamgp.testing.pool_laws import PoolLaws
from streamgp.testing.sampling_laws import SamplingLaws


def test_every_public_acquisition_function_has_a_law_suite():
    functions = {name for name in streamgp.acquisition.__all__ if name.islower()}
    assert functions <= covered_names(Path(__file__).parent, (SamplingLaws, PoolLaws))
