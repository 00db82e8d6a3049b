import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import PeriodicKernel
from tests.support.problems import random_sparse_gp
from tests.support.sampling_laws import SamplingLaws

import streamgp as sg
from streamgp.acquisition import thompson_sampling
from streamgp.acquisition.samplers import read_sampler
from streamgp.errors import UnsupportedError
from streamgp.likelihoods import Gaussian


class TestThompsonSampling(SamplingLaws):
    covers = "thompson_sampling"

    def choose(self, model, candidates, *, q, **options):
        return thompson_sampling(model, candidates, q=q, **options)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def uniform(rng, *shape, dtype=torch.float64):
    return torch.rand(*shape, generator=rng, dtype=dtype)


def sparse_model(rng, dtype=torch.float64):
    return sg.OnlineGP(random_sparse_gp(rng, dtype=dtype).gp, Gaussian(0.01))


def test_thompson_sampling_takes_the_best_remaining_candidate_of_each_joint_sample(rng):
    model, candidates = sparse_model(rng), uniform(rng, 8, 2)
    samples = model.gps[0].sample(candidates, 6, generator=seeded())
    left, expected = set(range(8)), []
    for sample in samples.tolist():
        expected.append(max(left, key=lambda i, sample=sample: sample[i]))
        left.remove(expected[-1])
    chosen = thompson_sampling(model, candidates, q=6, sampling="joint", generator=seeded())
    assert torch.equal(chosen, candidates[expected])


def test_minimizing_follows_the_negated_function(rng):
    model, points, candidates = sparse_model(rng), uniform(rng, 2, 2), uniform(rng, 30, 2)
    up, down = (
        read_sampler(model, "joint", maximize=maximize).sample(points, candidates, num_samples=3, generator=seeded())
        for maximize in (True, False)
    )
    assert torch.equal(up.at_points, -down.at_points)
    assert torch.equal(up.at_candidates, -down.at_candidates)
    assert torch.equal(up.cross_covariance, down.cross_covariance)
    sample = model.gps[0].sample(candidates, 1, generator=seeded()).squeeze(0)
    chosen = thompson_sampling(model, candidates, sampling="joint", maximize=False, generator=seeded())
    assert torch.equal(chosen, candidates[sample.argmin()].unsqueeze(0))


def test_paths_are_refused_where_functions_cannot_be_drawn(rng):
    kernel = sg.SparseGP.from_prior(PeriodicKernel(), torch.rand(4, 2))
    with pytest.raises(UnsupportedError, match=r"needs a SparseGP with a Matérn or RBF kernel.*Use sampling='joint'"):
        thompson_sampling(sg.OnlineGP(kernel), torch.rand(20, 2), sampling="paths")
    exact = SingleTaskGP(uniform(rng, 5, 2), uniform(rng, 5, 1))
    with pytest.raises(UnsupportedError, match=r"needs a streamgp.OnlineGP, but the model is a SingleTaskGP"):
        thompson_sampling(exact, torch.rand(20, 2).double(), sampling="paths")
