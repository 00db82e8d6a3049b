import pytest
import torch
from tests.support.conditioning_laws import DTYPES
from tests.support.problems import random_observations, random_sparse_gp
from tests.support.reference import assert_within, predict_dense
from torch.testing import assert_close

from streamgp.conditioning.nystrom import predict_nystrom


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_explained_and_the_rest_add_up_to_the_prediction(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    new = random_observations(rng, num_observations=5, dtype=dtype)
    seen = predict_nystrom(gp.process, new.read_for(gp))
    expected = predict_dense(gp, new.inputs)
    limits = expected.limits(dtype)
    assert_within((seen.mean.double() - expected.mean).abs(), limits.mean, "mean")
    assert_within((seen.variance().double() - expected.variance).abs(), limits.variance, "variance")
    assert (seen.slack >= 0).all()


def test_inducing_points_explain_themselves(rng):
    problem = random_sparse_gp(rng)
    new = random_observations(rng, num_observations=6)
    at_points = type(new)(problem.inducing_points, new.targets, new.noise_variance)
    seen = predict_nystrom(problem.gp.process, at_points.read_for(problem.gp))
    # But for the jitter, which is part of their values.
    assert_close(seen.slack, torch.zeros_like(seen.slack), rtol=0, atol=2 * problem.jitter)
