"""The default kernel of utilities that are only compared."""

import math

from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior, LogNormalPrior
from jaxtyping import Float
from torch import Tensor

__all__ = ["make_comparison_kernel"]

# Shape and rate of lengthscales in the unit cube, as in BoTorch's model of comparisons. A comparison tells so little
# that longer ones are taken for likelier than they are: the prior decides.
_LENGTHS = (2.4, 2.7)
# The variance of utilities at the mode of its prior, in noise variances, and the deviation of its logarithm: whoever
# compares can mostly tell.
_VARIANCE, _SPREAD = 10.0, 2.0


def make_comparison_kernel(inputs: Float[Tensor, "*n d"], noise_scale: float) -> Kernel:
    """Make a smooth kernel with priors of its own.

    Args:
        inputs: Of the model, in the unit cube.
        noise_scale: Standard deviation of the noise of a utility when it is compared.
    """
    variance = _VARIANCE * noise_scale**2
    shape, rate = _LENGTHS
    base = RBFKernel(ard_num_dims=inputs.shape[-1], lengthscale_prior=GammaPrior(shape, rate))
    kernel = ScaleKernel(base, outputscale_prior=LogNormalPrior(math.log(variance) + _SPREAD**2, _SPREAD)).to(inputs)
    base.lengthscale = (shape - 1.0) / rate
    kernel.outputscale = variance
    return kernel
