import torch
from torch.testing import assert_close

from streamgp.sites.acceleration import Anderson
from streamgp.testing.tolerances import tolerance


def test_a_linear_iteration_in_few_dimensions_ends_after_as_many_steps(rng):
    A = torch.randn(4, 4, generator=rng, dtype=torch.float64)
    A = 0.999 * A / torch.linalg.matrix_norm(A, 2)
    b = torch.randn(4, generator=rng, dtype=torch.float64)
    anderson, x = Anderson(), torch.zeros(4, dtype=torch.float64)
    for _ in range(6):
        x = anderson.propose(x, A @ x + b - x, torch.ones_like(x))
    fixed = torch.linalg.solve(torch.eye(4, dtype=torch.float64) - A, b)
    assert_close(x, fixed, **tolerance(torch.float64, scale=fixed.abs().max().item()))


def test_without_memory_a_step_is_that_of_the_iteration():
    anderson, x = Anderson(), torch.ones(2)
    assert torch.equal(anderson.propose(x, 0.5 * x, x), 1.5 * x)
    anderson.forget()
    assert torch.equal(anderson.propose(x, -x, x), 0.0 * x)
