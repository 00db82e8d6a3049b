import math
from dataclasses import fields

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from paper.baselines.grid_evidence import Evidence, GridKernel
from paper.baselines.wiski import Wiski
from streamgp.errors import ValueRangeError
from streamgp.testing.tolerances import tolerance

TOLERANCE = tolerance(torch.float64)
SIZE = 8
EXACTLY = "donot_use_mm_for_euclid_dist"


def some_kernel(lengthscales=(0.4, 0.7), outputscale=1.3, constant=0.2) -> GridKernel:
    return GridKernel(*(torch.tensor(value, dtype=torch.float64) for value in (lengthscales, outputscale, constant)))


def some_data(rng: torch.Generator, n: int) -> tuple[Tensor, Tensor, Tensor]:
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    y = torch.sin(6.0 * X[:, 0]) * X[:, 1] + 0.5
    return X, y, 0.01 + 0.1 * torch.rand(n, generator=rng, dtype=torch.float64)


def dense_weights(model: Wiski, X: Tensor) -> Tensor:
    sparse = model.grid.weights(X)
    return X.new_zeros(len(X), sparse.num_columns).scatter_add(1, sparse.columns, sparse.values)


class DenseGP:
    """An exact GP with the covariance of the grid, by dense algebra."""

    def __init__(self, model: Wiski, X: Tensor, y: Tensor, noise_variance: Tensor) -> None:
        self.model, self.X = model, X
        points = model.grid.points(like=X)
        scaled = points / model.kernel.lengthscales
        self.K = model.kernel.outputscale * (-torch.cdist(scaled, scaled, compute_mode=EXACTLY)).exp()
        self.constant = model.kernel.constant
        self.A = self.covariance(X, X) + noise_variance.diag()
        self.residual = y - self.constant

    def covariance(self, first: Tensor, second: Tensor) -> Tensor:
        return dense_weights(self.model, first) @ self.K @ dense_weights(self.model, second).mT

    def posterior(self, w: Tensor) -> tuple[Tensor, Tensor]:
        cross = self.covariance(w, self.X)
        mean = self.constant + cross @ torch.linalg.solve(self.A, self.residual)
        return mean, self.covariance(w, w) - cross @ torch.linalg.solve(self.A, cross.mT)

    def log_marginal_likelihood(self) -> Tensor:
        quadratic = self.residual @ torch.linalg.solve(self.A, self.residual)
        return -0.5 * (torch.logdet(self.A) + quadratic + len(self.X) * math.log(2.0 * math.pi))


# More observations than grid points, and fewer.
@pytest.mark.parametrize("n", [5, 100])
def test_it_equals_an_exact_gp_with_the_interpolated_covariance(rng, n):
    data = some_data(rng, n)
    model = Wiski.start(SIZE, some_kernel()).observe(*data)
    dense = DenseGP(model, *data)
    w = torch.rand(20, 2, generator=rng, dtype=torch.float64)
    mean, covariance = dense.posterior(w)
    ours = model.predict(w)
    assert_close(ours[0], mean, **TOLERANCE)
    assert_close(ours[1], covariance.diagonal(), **TOLERANCE)
    # The terms that cancel are as large as the sum of squares.
    size = model.statistics.moments[0].item()
    expected = dense.log_marginal_likelihood()
    assert_close(model.log_marginal_likelihood(), expected, **tolerance(torch.float64, scale=size))


def test_learning_one_by_one_equals_learning_at_once(rng):
    X, y, noise = some_data(rng, 12)
    start = Wiski.start(SIZE, some_kernel())
    once, step = start.observe(X, y, noise), start
    for i in range(12):
        step = step.observe(X[i : i + 1], y[i : i + 1], noise[i : i + 1])
    for name in ("mean", "covariance"):
        assert_close(getattr(step, name), getattr(once, name), **TOLERANCE)
    assert_close(step.log_marginal_likelihood(), once.log_marginal_likelihood(), **TOLERANCE)
    assert start.statistics.num_observations == 0


def test_the_state_has_one_size_whatever_was_seen(rng):
    few = Wiski.start(SIZE, some_kernel()).observe(*some_data(rng, 3))
    many = few.observe(*some_data(rng, 500))

    def sizes(model: Wiski) -> list[torch.Size]:
        parts = [vars(part)[field.name] for part in (model, model.statistics) for field in fields(part)]
        return [part.shape for part in parts if isinstance(part, Tensor)]

    assert sizes(few) == sizes(many)
    assert many.statistics.num_observations == 503


def test_a_refit_keeps_the_observations_and_raises_the_objective(rng):
    data = some_data(rng, 30)
    model = Wiski.start(SIZE, some_kernel()).observe(*data)
    refitted = model.refit()

    def objective(each: Wiski) -> float:
        return (each.log_marginal_likelihood() + each.kernel.log_prior()).item()

    assert objective(refitted) > objective(model) + 1.0
    w = torch.rand(20, 2, generator=rng, dtype=torch.float64)
    mean, covariance = DenseGP(refitted, *data).posterior(w)
    assert_close(refitted.predict(w)[0], mean, **TOLERANCE)
    assert_close(refitted.predict(w)[1], covariance.diagonal(), **TOLERANCE)


def test_the_gradient_of_the_evidence_is_right(rng):
    model = Wiski.start(5, some_kernel()).observe(*some_data(rng, 6))
    evidence, points = Evidence.of(model.statistics), model.grid.points(like=model.mean)
    x = model.kernel.pack().requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: evidence.log_marginal_likelihood(GridKernel.unpack(x), points), (x,))


def test_the_chosen_candidates_lower_the_integrated_variance_most(rng):
    data = some_data(rng, 6)
    model = Wiski.start(SIZE, some_kernel()).observe(*data)
    candidates = torch.rand(9, 2, generator=rng, dtype=torch.float64)
    targets = torch.rand(30, 2, generator=rng, dtype=torch.float64)
    chosen = model.choose(candidates, targets, noise_variance=0.05, num_chosen=3)
    expected: list[int] = []
    noise = torch.tensor([0.05], dtype=torch.float64)
    for _ in range(3):
        left = [i for i in range(9) if i not in expected]
        # The variance does not depend on what is observed.
        after = [model.observe(candidates[i : i + 1], torch.zeros_like(noise), noise) for i in left]
        best = min(range(len(left)), key=lambda k: after[k].predict(targets)[1].sum().item())
        expected.append(left[best])
        model = after[best]
    assert chosen == expected


def test_inputs_outside_the_square_are_refused(rng):
    X, y, noise = some_data(rng, 3)
    with pytest.raises(ValueRangeError, match="must lie in the unit square"):
        Wiski.start(SIZE, some_kernel()).observe(X + 1.0, y, noise)
