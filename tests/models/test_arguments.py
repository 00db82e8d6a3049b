import pytest
import torch
from tests.support.problems import random_sparse_gp

from streamgp.errors import OptionError, ShapeError
from streamgp.likelihoods import Gaussian, Poisson
from streamgp.models.arguments import known_noise, noise_column, read_gps, read_indices, read_likelihoods


def test_one_gp_or_one_for_each_output_is_read(rng):
    gp = random_sparse_gp(rng).gp
    assert read_gps(gp) == (gp,)
    assert read_gps([gp, gp]) == (gp, gp)
    with pytest.raises(OptionError, match="at least one GP"):
        read_gps([])
    with pytest.raises(ShapeError, match="device"):
        read_gps([gp, random_sparse_gp(rng, num_dims=3).gp])


def test_one_likelihood_stands_for_all_outputs():
    assert read_likelihoods(None, 2) == (None, None)
    each = [Gaussian(0.1), Poisson()]
    assert read_likelihoods(each, 2) == tuple(each)
    with pytest.raises(OptionError, match="one for each of the 3, but there are 2"):
        read_likelihoods(each, 3)


def test_negative_indices_count_from_the_end():
    assert read_indices(None, 3) == [0, 1, 2]
    assert read_indices([-1, 0], 3) == [2, 0]
    with pytest.raises(OptionError, match="whole"):
        read_indices([3], 3)


def test_noise_has_a_column_for_each_output():
    noise = torch.arange(6.0).reshape(3, 2)
    assert noise_column(noise, 1, 2).tolist() == [1.0, 3.0, 5.0]
    assert noise_column(noise[0], 1, 2).tolist() == [1.0]
    with pytest.raises(ShapeError, match="outputs"):
        noise_column(noise, 0, 3)


def test_variances_that_could_be_a_matrix_become_one():
    X, y = torch.zeros(3, 3, 2), torch.zeros(3, 3)
    variances = torch.rand(3, 3, 1)
    assert known_noise(variances, 0, 1, y=y, inputs=X).shape == (3, 3)
    ambiguous = torch.rand(2, 3, 3, 1)
    assert known_noise(ambiguous, 0, 1, y=y, inputs=X).equal(torch.diag_embed(ambiguous[..., 0]))
