"""A check that a kernel is made for inputs of a given dimension."""

from gpytorch.kernels import AdditiveKernel, Kernel, ProductKernel, ScaleKernel

from streamgp.errors import ShapeError

__all__ = ["check_num_dims"]


def check_num_dims(kernel: Kernel, num_dims: int) -> None:
    """Refuse a kernel whose lengthscales or active dimensions do not fit inputs with `num_dims` columns.

    Sums, products and scales are looked into. What other kernels do with their inputs is not known, so only their own
    number of lengthscales counts.
    """
    if kernel.active_dims is not None:
        largest = int(kernel.active_dims.max())
        if largest >= num_dims:
            raise ShapeError(
                f"The kernel's active dimension {largest} does not exist in inputs with {num_dims} columns. "
                "Columns are counted from 0; change active_dims, or pass inputs with more columns."
            )
        num_dims = len(kernel.active_dims)
    ard_num_dims = kernel.ard_num_dims
    if ard_num_dims is not None and ard_num_dims != num_dims:
        raise ShapeError(
            f"The {type(kernel).__name__} has {ard_num_dims} lengthscales (its ard_num_dims), but sees inputs "
            f"with {num_dims} columns. Make it with ard_num_dims={num_dims}, or without for one lengthscale for all."
        )
    if isinstance(kernel, AdditiveKernel | ProductKernel):
        for part in kernel.kernels:
            check_num_dims(part, num_dims)
    elif type(kernel) is ScaleKernel and kernel.base_kernel.active_dims is None:
        # With active dimensions of its base, the ScaleKernel has selected them already.
        check_num_dims(kernel.base_kernel, num_dims)
