import pytest
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel

from streamgp.errors import ShapeError
from streamgp.gp.kernel_dims import check_num_dims

FITTING = [
    RBFKernel(),
    RBFKernel(ard_num_dims=3),
    ScaleKernel(MaternKernel(ard_num_dims=3)),
    RBFKernel(ard_num_dims=2, active_dims=(0, 2)),
    ScaleKernel(RBFKernel(ard_num_dims=1, active_dims=(2,))),
    RBFKernel(ard_num_dims=3) + LinearKernel(active_dims=(1,)),
]


@pytest.mark.parametrize("kernel", FITTING)
def test_kernels_that_fit_pass(kernel):
    check_num_dims(kernel, 3)


@pytest.mark.parametrize("kernel", [RBFKernel(ard_num_dims=2), ScaleKernel(RBFKernel(ard_num_dims=2) + RBFKernel())])
def test_kernels_with_other_lengthscales_are_refused(kernel):
    with pytest.raises(ShapeError, match=r"has 2 lengthscales .* but sees inputs with 3 columns"):
        check_num_dims(kernel, 3)


def test_dimensions_that_do_not_exist_are_refused():
    with pytest.raises(ShapeError, match="active dimension 3 does not exist in inputs with 3 columns"):
        check_num_dims(RBFKernel(active_dims=(0, 3)), 3)
