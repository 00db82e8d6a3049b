"""Expected improvement against quadrature, and a search that keeps to the box."""

import torch
from torch.testing import assert_close

from paper.baselines.expected_improvement import expected_improvement, suggest_point
from paper.problems.basis_vector_gp import BasisVectorGP, SquaredExponential
from streamgp.testing.tolerances import tolerance


def learned(rng):
    kernel = SquaredExponential(1.0, torch.tensor([4.0, 4.0], dtype=torch.float64))
    X = torch.rand(8, 2, generator=rng, dtype=torch.float64)
    gp = BasisVectorGP.empty(kernel, noise_variance=0.01, max_basis=8).learn(X, (3.0 * X).sin().sum(-1))
    return gp, X


def test_it_is_the_mean_of_what_is_above_the_best(rng):
    gp, _ = learned(rng)
    W = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    best = torch.tensor(1.2, dtype=torch.float64)
    mean, variance = gp.predict(W)
    z = torch.linspace(-9, 9, 200_001, dtype=torch.float64)
    gains = (mean.unsqueeze(-1) + variance.sqrt().unsqueeze(-1) * z - best).clamp_min(0.0)
    density = (-0.5 * z.square()).exp() / (2.0 * torch.pi) ** 0.5
    expected = torch.trapezoid(gains * density, z)
    assert_close(expected_improvement(gp, W, best), expected, **tolerance(torch.float64, scale=1e6))


def test_the_suggestion_is_in_the_box_and_no_worse_than_its_start(rng):
    gp, X = learned(rng)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    point = suggest_point(gp, X, bounds)
    assert ((bounds[0] <= point) & (bounds[1] >= point)).all()
    means = gp.predict(X)[0]
    start = X[int(means.argmax())].unsqueeze(0)
    assert expected_improvement(gp, point, means.max()) >= expected_improvement(gp, start, means.max())
