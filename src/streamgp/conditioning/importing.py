"""Reading trained GPyTorch models, of one output or of several, and states of exported files."""

from typing import Any, final

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean, ZeroMean
from gpytorch.models import ApproximateGP
from gpytorch.variational import IndependentMultitaskVariationalStrategy, LMCVariationalStrategy
from torch import Tensor

from streamgp.conditioning.multi_output import MultiOutputGP
from streamgp.conditioning.sparse_gp import SparseGP
from streamgp.errors import UnsupportedError
from streamgp.export import read_state
from streamgp.gp import SparseProcess, read_gpytorch
from streamgp.gp.exporting import OutputsVariationalStrategy

__all__ = ["from_gpytorch", "import_state"]


def import_state(gp: SparseGP, state: bytes) -> SparseGP:
    """Read back what a file written by `SparseGP.export` has learned.

    Beliefs of many devices that started from one prior add up exactly with `merge`.

    Args:
        gp: The GP that was exported; what it had learned is replaced.
        state: What `state_out` of the file wrote.

    Returns:
        The GP with the belief of the device.
    """
    return SparseGP(read_state(gp.process, state))


def from_gpytorch(
    model: ApproximateGP, *, kernel: Kernel | None = None, mean: Mean | None = None
) -> SparseGP | MultiOutputGP:
    """Read a GPyTorch `ApproximateGP`, trained or not, into a GP that predicts as it does.

    Whitened and unwhitened strategies are read, with Cholesky, mean-field, delta, natural and tril-natural variational
    distributions and any batch shape. The model's own jitter on the kernel matrix of the inducing points is kept; the
    one that GPyTorch's whitened strategy also adds to the predictive variances is not.

    ```python
    import torch
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.means import ConstantMean
    from gpytorch.models import ApproximateGP
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy


    class Trained(ApproximateGP):
        def __init__(self, Z):
            super().__init__(VariationalStrategy(self, Z, CholeskyVariationalDistribution(len(Z))))
            self.mean_module, self.covar_module = ConstantMean(), ScaleKernel(RBFKernel())

        def forward(self, x):
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))


    gp = sg.from_gpytorch(Trained(torch.rand(5, 2)))
    after = gp.condition(torch.rand(3, 2), torch.ones(3), noise_variance=0.1)
    ```

    Args:
        model: The model; later training does not reach the result. One that was never called is initialized as its
            first call would.
        kernel: The kernel, if the model does not call it `covar_module`.
        mean: The mean, if the model does not call it `mean_module`.

    Returns:
        A `SparseGP`, or a `MultiOutputGP` for a model with an `LMCVariationalStrategy` or an
        `IndependentMultitaskVariationalStrategy` around its own, or one that `MultiOutputGP.to_gpytorch` made.
    """
    strategy: Any = getattr(model, "variational_strategy", None)
    if isinstance(strategy, OutputsVariationalStrategy):
        return MultiOutputGP(SparseGP(read_gpytorch(_LatentModel(model), kernel=kernel, mean=mean)))
    if not isinstance(strategy, LMCVariationalStrategy | IndependentMultitaskVariationalStrategy):
        return SparseGP(read_gpytorch(model, kernel=kernel, mean=mean))
    latent = read_gpytorch(_LatentModel(model), kernel=kernel, mean=mean)
    return _mixed(latent, _coefficients(strategy, latent))


@final
class _LatentModel(ApproximateGP):  # type: ignore[misc] # GPyTorch's models have no types
    """The latent functions of a model of several outputs, as a model of their own."""

    def __init__(self, model: Any) -> None:
        super().__init__(model.variational_strategy.base_variational_strategy)
        object.__setattr__(self, "whole", model)
        for name in ("covar_module", "mean_module"):
            if isinstance(getattr(model, name, None), torch.nn.Module):
                self.add_module(name, getattr(model, name))

    def forward(self, x: Tensor) -> MultivariateNormal:
        """The prior of the latent functions."""
        whole: Any = self.__dict__["whole"]
        return whole.forward(x)


def _coefficients(strategy: Any, latent: SparseProcess) -> Tensor:
    """The matrix of outputs and latent functions."""
    if len(latent.batch_shape) != 1:
        raise UnsupportedError(
            f"A model of several outputs must have one leading axis, that of its latent functions, but has "
            f"{tuple(latent.batch_shape)}. Read the members of a batch one by one."
        )
    num_latents = latent.batch_shape[0]
    if isinstance(strategy, LMCVariationalStrategy):
        return strategy.lmc_coefficients.detach().expand(num_latents, strategy.num_tasks).mT
    eye = torch.eye(num_latents, dtype=latent.whitened_mean.dtype, device=latent.whitened_mean.device)
    # A single latent function is the same for all outputs.
    return eye.expand(strategy.num_tasks, num_latents) if num_latents == 1 else eye


def _mixed(latent: SparseProcess, mixing: Tensor) -> MultiOutputGP:
    """Outputs that mix latent functions with independent beliefs."""
    prior, num_latents = latent.prior, latent.batch_shape[0]
    if type(prior.mean_function) not in (ConstantMean, ZeroMean):
        raise UnsupportedError(
            f"The latent functions of a model of several outputs must have zero or constant means, but have a "
            f"{type(prior.mean_function).__name__}. Retrain the model with ConstantMean."
        )
    constants = prior.mean(latent.inducing_points)[..., 0].expand(num_latents)
    kernels = [prior.kernel[j] for j in range(num_latents)] if prior.kernel.batch_shape else prior.kernel
    points = list(latent.inducing_points.unbind(0))
    start = MultiOutputGP.from_prior(kernels, points, mixing=mixing, mean=mixing @ constants).sparse_gp.process
    root = torch.block_diag(*latent.whitened_root.unbind(0))
    belief = SparseProcess(start.prior, start.inducing_points, latent.whitened_mean.flatten(), root, latent.jitter)
    return MultiOutputGP(SparseGP(belief))
