"""The default kernel of utilities that are only compared."""

from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior
from jaxtyping import Float
from torch import Tensor

__all__ = ["make_comparison_kernel"]

# Shape and rate of lengthscales in the unit cube, as BoTorch's model of comparisons has them. A comparison tells so
# little that the prior decides, and that of real outcomes would have utilities next to linear.
_LENGTHS = (2.4, 2.7)


def make_comparison_kernel(inputs: Float[Tensor, "*n d"]) -> Kernel:
    """Make a smooth kernel whose lengthscales have a prior of their own.

    Args:
        inputs: Of the model, in the unit cube.
    """
    shape, rate = inputs.new_tensor(_LENGTHS)
    base = RBFKernel(ard_num_dims=inputs.shape[-1], lengthscale_prior=GammaPrior(shape, rate))
    kernel = ScaleKernel(base).to(inputs)
    base.lengthscale = (shape - 1.0) / rate
    kernel.outputscale = 1.0
    return kernel
