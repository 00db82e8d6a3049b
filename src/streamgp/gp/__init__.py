"""Gaussian processes: priors, sparse posteriors, and what they predict."""

from streamgp.gp.inducing import AbstractInducing, inducing_variables
from streamgp.gp.kernel_function import AbstractFeatureKernel, AbstractKernelFunction
from streamgp.gp.kernels import ModuleKernel, read_kernel
from streamgp.gp.paths import SamplePaths, sample_paths
from streamgp.gp.prior import Prior
from streamgp.gp.process import AbstractProcess, Prediction, num_own_axes, row_by_row
from streamgp.gp.pseudo_data import PseudoData, pseudo_data
from streamgp.gp.reading import read_gpytorch
from streamgp.gp.sparse import InducingFactor, SparseProcess
from streamgp.gp.spectral import AbstractSpectralKernel
from streamgp.gp.stationary import StationaryKernel

__all__ = [
    "AbstractFeatureKernel",
    "AbstractInducing",
    "AbstractKernelFunction",
    "AbstractProcess",
    "AbstractSpectralKernel",
    "InducingFactor",
    "ModuleKernel",
    "Prediction",
    "Prior",
    "PseudoData",
    "SamplePaths",
    "SparseProcess",
    "StationaryKernel",
    "inducing_variables",
    "num_own_axes",
    "pseudo_data",
    "read_gpytorch",
    "read_kernel",
    "row_by_row",
    "sample_paths",
]
