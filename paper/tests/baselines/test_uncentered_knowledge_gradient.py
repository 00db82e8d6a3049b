import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean

import streamgp as sg
from paper.baselines.uncentered_knowledge_gradient import UncenteredKnowledgeGradient, uncentered
from streamgp.optimizers import Search
from streamgp.testing.tolerances import rounding


def made_gp(rng, dtype):
    kernel, mean = ScaleKernel(RBFKernel()).to(dtype), ConstantMean().to(dtype)
    mean.initialize(constant=1.5)
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64).to(dtype)
    gp = sg.SparseGP.from_prior(kernel, X[:4], mean=mean)
    return gp.absorb(X, 1.0 + X.sum(-1), noise_variance=0.1, inducing="keep")[0], X


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_uncentered_gp_is_the_exact_one_on_uncentered_pseudo_data(rng, dtype):
    gp, X = made_gp(rng, dtype)
    c, zero = 1.5, 0.25
    mistaken = uncentered(gp, zero)
    data = gp.pseudo_data()
    noise = torch.linalg.inv(data.precision.double())
    L = gp.process.inducing_factor.double_factor
    Kzz, Kxz = L @ L.mT, gp.kernel.double()(X.double(), data.inputs.double()).to_dense()
    residual = data.targets.double() - 2 * c + zero  # of values centered by zero where c belongs
    expected = c + Kxz @ torch.linalg.solve(Kzz + noise, residual)
    close = rounding(dtype, condition=float(torch.linalg.cond(Kzz)), scale=float(residual.abs().max()))
    torch.testing.assert_close(mistaken.predict(X).mean.double(), expected, **close, check_dtype=False)
    torch.testing.assert_close(mistaken.predict(X).variance, gp.predict(X).variance)


def test_a_gp_with_the_given_mean_is_unchanged(rng):
    gp, X = made_gp(rng, torch.float64)
    assert uncentered(gp, 1.5).predict(X).mean.equal(gp.predict(X).mean)


@pytest.mark.slow
def test_it_proposes_points_of_the_space():
    search = Search(num_restarts=2, raw_samples=8, max_iterations=3)
    optimizer = sg.Optimizer(
        [(0.0, 1.0), (0.0, 1.0)],
        constraints=[sg.Constraint(upper=0.0)],
        acquisition=UncenteredKnowledgeGradient(4),
        num_initial=4,
        search=search,
        seed=0,
    )
    X = optimizer.ask(4)
    optimizer.tell(X, torch.stack([X.sum(-1), X[:, 0] - 0.5], dim=-1))
    chosen = optimizer.ask(2)
    assert chosen.shape == (2, 2)
    assert ((chosen >= 0.0) & (chosen <= 1.0)).all()
