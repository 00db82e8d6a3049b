import pickle

import torch
from torch.testing import assert_close

from streamgp.likelihoods import Gaussian
from streamgp.training.features import Observed
from streamgp.training.priors import Layout
from streamgp.training.sharding.shards import ParameterPoint
from streamgp.training.starting import starting_hyperparameters


def test_a_place_that_was_sent_has_the_same_hyperparameters(rng):
    X = torch.rand(8, 2, generator=rng, dtype=torch.float64)
    data = Observed(X, X[:, 0])
    setting = starting_hyperparameters(
        data, likelihood=Gaussian(0.1), kernel=None, mean=None, start=None, latent_variance=1.0
    )
    layout = Layout(setting, True, {}, {"noise_variance": (-9.0, 9.0)})
    place = ParameterPoint(layout, layout.space().start + 0.1)
    sent = pickle.loads(pickle.dumps(place))
    assert sent.space.names == place.space.names
    assert_close(sent.setting.inducing_points, place.setting.inducing_points, rtol=0, atol=0)
    assert_close(sent.setting.kernel.outputscale, place.setting.kernel.outputscale, rtol=0, atol=0)
    assert_close(sent.setting.likelihood.noise_variance, place.setting.likelihood.noise_variance, rtol=0, atol=0)
