import subprocess
import sys

import pytest

from streamgp.likelihoods import AbstractLikelihood


def test_the_abstract_likelihood_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        AbstractLikelihood()


@pytest.mark.slow
def test_importing_likelihoods_does_not_import_gpytorch():
    code = "import sys, streamgp.likelihoods; sys.exit('gpytorch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
