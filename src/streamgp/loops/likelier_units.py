"""In which units an outcome is modeled, where several may be right: the likeliest."""

from collections.abc import Callable, Sequence

from jaxtyping import Float
from torch import Tensor

from streamgp.loops.evidence import CLEARLY
from streamgp.loops.units import OutcomeUnits
from streamgp.training import FitResult

__all__ = ["fit_in_likelier_units"]

# The fit that is taken, and that with another kernel, of targets.
Fits = tuple[FitResult, FitResult | None]


def fit_in_likelier_units(
    fit: Callable[[Tensor], Fits], y: Float[Tensor, " n"], options: Sequence[OutcomeUnits]
) -> tuple[OutcomeUnits, Fits]:
    """Fit an outcome in several units, and take those in which it is likeliest, in the user's units.

    How outcomes are spread does not tell: those of a search lie close to their bounds. What they are as a function of
    the inputs does, and so both are fitted.

    Args:
        fit: To targets.
        y: Outcomes.
        options: Units; the first are taken unless others are clearly likelier.
    """
    fits = [fit(units.inside(y)) for units in options]
    log_likelihoods = [
        fitted[0].info.bound + float(units.log_change(y).sum()) - (CLEARLY if number else 0.0)
        for number, (units, fitted) in enumerate(zip(options, fits, strict=True))
    ]
    best = max(range(len(options)), key=log_likelihoods.__getitem__)
    return options[best], fits[best]
