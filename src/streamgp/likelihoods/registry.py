"""Likelihoods by name."""

from typing import TypeVar

from streamgp.errors import ArgumentTypeError, OptionError
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
from streamgp.likelihoods.softmax import Softmax
from streamgp.likelihoods.student_t import StudentT
from streamgp.likelihoods.volatility import Volatility

__all__ = ["from_name", "known_classes", "names", "read_likelihood", "register"]

Class = TypeVar("Class", bound=type[AbstractLikelihood])

_CLASSES: dict[str, type[AbstractLikelihood]] = {}


def register(cls: Class) -> Class:
    """Make a likelihood known by its name; a decorator for classes of your own.

    Its fields must be the arguments of its constructor, so that it can be saved and loaded.
    """
    if not cls.name:
        raise OptionError(f'{cls.__name__} has no name to be known by. Give it the class attribute name = "...".')
    if _CLASSES.get(cls.name, cls).__qualname__ != cls.__qualname__:
        raise OptionError(
            f"The name {cls.name!r} belongs to {_CLASSES[cls.name].__name__} already. Give {cls.__name__} another one."
        )
    _CLASSES[cls.name] = cls
    return cls


for _each in (
    Bernoulli,
    Beta,
    Binomial,
    Censored,
    Exponential,
    Gamma,
    Gaussian,
    HeteroskedasticGaussian,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Preference,
    Softmax,
    StudentT,
    Volatility,
):
    register(_each)


def names(*, num_inputs: int | None = None, has_response: bool | None = None) -> tuple[str, ...]:
    """Return the names of all likelihoods of one latent function, or of those of some kind."""
    return tuple(
        name
        for name, cls in sorted(_CLASSES.items())
        if not issubclass(cls, AbstractMultiLatentLikelihood)
        and num_inputs in (None, cls.num_inputs)
        and has_response in (None, cls.has_response)
    )


def known_classes() -> dict[str, type[AbstractLikelihood]]:
    """Return all likelihoods that have a name, by the names of their classes."""
    return {cls.__name__: cls for cls in _CLASSES.values()}


def from_name(name: str) -> AbstractLikelihood:
    """Make a likelihood by its name, with parameters to start learning from.

    Args:
        name: Such as `"poisson"`; `names()` are all.
    """
    if name not in _CLASSES:
        raise OptionError(
            f"likelihood must be one of {', '.join(map(repr, names()))}, or an object of streamgp.likelihoods, but is "
            f"{name!r}."
        )
    return _CLASSES[name].starting()


def read_likelihood(likelihood: object) -> AbstractLikelihood:
    """Read a likelihood that a user gave by name or as an object."""
    if isinstance(likelihood, str):
        return from_name(likelihood)
    if not isinstance(likelihood, AbstractLikelihood):
        raise ArgumentTypeError(
            f"likelihood must be a name or one of streamgp.likelihoods, but is a {type(likelihood).__name__}. "
            f"The names are {', '.join(map(repr, names()))}; wrap one of GPyTorch's with "
            "streamgp.likelihoods.from_gpytorch."
        )
    return likelihood
