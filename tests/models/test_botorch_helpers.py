"""What BoTorch ships to test models with, applied to ours."""

import pytest
import torch
from botorch.acquisition import qLowerBoundMaxValueEntropy
from botorch.models.transforms import Normalize, Standardize
from botorch.sampling.pathwise import draw_matheron_paths
from botorch.utils.test_helpers import (
    DummyNonScalarizingPosteriorTransform,
    get_pvar_expected,
    get_sample_moments,
)
from botorch.utils.testing import BotorchTestCase
from tests.support.model_laws import uniform
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.likelihoods import Gaussian
from streamgp.models import LatentPosterior
from streamgp.testing.tolerances import approximation, judgement


class TestPosteriorOfBotorch(BotorchTestCase):
    """With BoTorch's own setup, which turns its warnings about data into errors or silence."""

    def test_noise_is_what_botorch_expects(self):
        rng = torch.Generator().manual_seed(0)
        model = sg.OnlineGP(random_sparse_gp(rng).gp, Gaussian(0.3))
        X = uniform(rng, 4, 3, 2)
        noisy = model.posterior(X, observation_noise=True)
        self.assertAllClose(noisy.variance, get_pvar_expected(noisy, model, X, m=1))

    def test_paths_have_the_moments_of_the_posterior(self):
        rng = torch.Generator().manual_seed(0)
        model = sg.OnlineGP(random_sparse_gp(rng).gp, Gaussian(0.3))
        X, shape = uniform(rng, 3, 2), torch.Size([4000])
        torch.manual_seed(0)
        mean, covariance = get_sample_moments(draw_matheron_paths(model, sample_shape=shape)(X), shape)
        posterior = model.posterior(X)
        self.assertAllClose(mean, posterior.mean.squeeze(-1), **judgement(absolute=0.1))
        self.assertAllClose(covariance, posterior.distribution.covariance_matrix, **judgement(absolute=0.1))

    def test_transforms_that_keep_the_outputs_are_applied(self):
        rng = torch.Generator().manual_seed(0)
        model = sg.OnlineGP([random_sparse_gp(rng).gp] * 2, Gaussian(0.3))
        posterior = model.posterior(uniform(rng, 3, 2), posterior_transform=DummyNonScalarizingPosteriorTransform())
        assert isinstance(posterior, LatentPosterior)


@pytest.mark.filterwarnings("ignore")
def test_gibbon_with_pending_points_does_not_depend_on_the_units(rng):
    gp = random_sparse_gp(rng).gp
    bounds = torch.tensor([[-3.0, 10.0], [5.0, 30.0]], dtype=torch.float64)
    into, out = Normalize(2, bounds=bounds), Standardize(1)
    out(40.0 + 7.0 * uniform(rng, 6, 1))
    plain = sg.OnlineGP(gp, Gaussian(0.1))
    model = sg.OnlineGP(gp, Gaussian(0.1), input_transform=into, outcome_transform=out)
    candidates, pending, X = uniform(rng, 30, 2), uniform(rng, 2, 2), uniform(rng, 3, 1, 2)
    values = []
    for one, units in ((plain, lambda x: x), (model, into.untransform)):
        torch.manual_seed(0)
        function = qLowerBoundMaxValueEntropy(one, units(candidates), X_pending=units(pending))
        values.append(function(units(X)))
    assert_close(values[1], values[0], **approximation(1e-6, "jitter"))
