import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch.testing import assert_close

from paper.baselines.exact_gp import ExactGP
from paper.schema.results import as_json
from paper.studies import branin
from paper.studies.branin import STUDY, BraninSettings
from streamgp.conditioning import SparseGP
from streamgp.testing.tolerances import approximation

SETTINGS = BraninSettings(num_observations=12, num_inducing=12, grid_size=3, num_fantasies=4, num_candidates=20)
NOISE = 0.2**2


def test_maps_agree_where_every_observation_is_an_inducing_point_and_hyperparameters_do():
    X = torch.rand(7, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y, kernel = torch.sin(4.0 * X).sum(-1), ScaleKernel(RBFKernel()).double()
    grid, candidates = X[:3] + 0.1, X[3:] - 0.1
    gp, _ = SparseGP.from_prior(kernel, X).absorb(X, y, noise_variance=NOISE, inducing="keep")
    sparse = branin._sparse_belief(gp, grid, candidates, is_absorbed=False)
    exact = branin._exact_belief(ExactGP(kernel, ZeroMean(), X, y, NOISE), grid, candidates)
    maps = [branin._knowledge_gradient(belief, num_fantasies=8, seed=0) for belief in (sparse, exact)]
    assert_close(maps[0], maps[1], **approximation(1e-5, "printed"))


def test_looking_ahead_is_conditioning_on_each_fantasy():
    X = torch.rand(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y, kernel = torch.sin(4.0 * X).sum(-1), ScaleKernel(RBFKernel()).double()
    gp = ExactGP(kernel, ZeroMean(), X, y, NOISE)
    belief = branin._exact_belief(gp, X[:2] + 0.1, X[2:] - 0.1)
    fantasies = torch.tensor([[0.5, -0.5], [1.0, 2.0], [0.0, 0.3]], dtype=torch.float64)
    found = belief.look_ahead(fantasies)
    expected = gp.condition(X[1:2] + 0.1, fantasies[2, 1:]).predict(X[2:] - 0.1).mean
    assert_close(found[2, 1], expected)
    sparse, _ = SparseGP.from_prior(kernel, X[:4]).absorb(X, y, noise_variance=NOISE, inducing="keep")
    found = branin._sparse_belief(sparse, X[:2] + 0.1, X[2:] - 0.1, is_absorbed=True).look_ahead(fantasies)
    absorbed, _ = sparse.absorb(X[1:2] + 0.1, fantasies[2, 1:], noise_variance=NOISE)
    assert_close(found[2, 1], absorbed.predict(X[2:] - 0.1).mean)


@pytest.mark.parametrize("method", [*STUDY.methods])
def test_outcomes_are_maps_in_the_units_of_branin(method):
    outcome = as_json(STUDY.run("branin", method, 0, SETTINGS))
    assert outcome["first"] == [-5.0, 2.5, 10.0]
    assert outcome["second"] == [0.0, 7.5, 15.0]
    gain = np.array(outcome["gain"])
    assert gain.shape == (3, 3)
    assert gain.max() > 0
    assert np.shape(outcome["inputs"]) == (12, 2)
