"""Likelihoods: how observations depend on the latent function."""

from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.bernoulli import Bernoulli
from streamgp.likelihoods.beta import Beta
from streamgp.likelihoods.binomial import Binomial
from streamgp.likelihoods.censored import Censored
from streamgp.likelihoods.gamma import Exponential, Gamma
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.heteroskedastic import HeteroskedasticGaussian
from streamgp.likelihoods.multi_latent import AbstractMultiLatentLikelihood
from streamgp.likelihoods.negative_binomial import NegativeBinomial
from streamgp.likelihoods.ordinal import Ordinal
from streamgp.likelihoods.poisson import Poisson
from streamgp.likelihoods.preference import Preference
from streamgp.likelihoods.registry import from_name, names, read_likelihood, register
from streamgp.likelihoods.softmax import Softmax
from streamgp.likelihoods.student_t import StudentT
from streamgp.likelihoods.volatility import Volatility
from streamgp.likelihoods.wrapped import from_gpytorch

__all__ = [
    "AbstractLikelihood",
    "AbstractMultiLatentLikelihood",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Censored",
    "Exponential",
    "Gamma",
    "Gaussian",
    "HeteroskedasticGaussian",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Preference",
    "Softmax",
    "StudentT",
    "Volatility",
    "from_gpytorch",
    "from_name",
    "names",
    "read_likelihood",
    "register",
]
