"""The options of a TuRBO optimizer, checked."""

from dataclasses import dataclass
from typing import Any, final

from streamgp.checks import check_choice, check_count
from streamgp.errors import DTypeError, UnsupportedError
from streamgp.likelihoods import Gaussian
from streamgp.optimizers.box import Box
from streamgp.optimizers.outcomes import Outcome
from streamgp.optimizers.trust_region import RegionRules

__all__ = ["TurboSettings"]

MODELS = ("sparse", "exact")
ACQUISITIONS = ("lts", "ts")
OBJECTIVES = ("elbo", "pll")


@final
@dataclass(frozen=True, eq=False)
class TurboSettings:
    """What an optimizer was made with; described there."""

    box: Box
    outcome: Outcome
    rules: RegionRules
    maximize: bool
    model: str
    acquisition: str
    objective: str
    num_inducing: int
    num_initial: int
    num_candidates: int
    depth: int
    num_paths: int
    seed: int

    @classmethod
    def read(
        cls,
        bounds: Any,
        *,
        likelihood: Any,
        rules: Any,
        maximize: Any,
        model: Any,
        acquisition: Any,
        objective: Any,
        num_inducing: Any,
        num_initial: Any,
        num_candidates: Any,
        depth: Any,
        num_paths: Any,
        seed: Any,
    ) -> "TurboSettings":
        """Check all options."""
        box, outcome = Box.read(bounds), Outcome.read(likelihood)
        if not isinstance(maximize, bool):
            raise DTypeError(f"maximize must be True or False, but is {maximize!r}.")
        if rules is not None and not isinstance(rules, RegionRules):
            raise DTypeError(
                f"rules must be a streamgp.optimizers.RegionRules, but is a {type(rules).__name__}. "
                "Write rules=RegionRules(success_tolerance=3)."
            )
        _check_outcome(outcome, check_choice(model, MODELS, "model"))
        d = box.num_dims
        return cls(
            box=box,
            outcome=outcome,
            rules=RegionRules() if rules is None else rules,
            maximize=maximize,
            model=model,
            acquisition=check_choice(acquisition, ACQUISITIONS, "acquisition"),
            objective=check_choice(objective, OBJECTIVES, "objective"),
            num_inducing=check_count(num_inducing, "num_inducing"),
            num_initial=2 * d if num_initial is None else check_count(num_initial, "num_initial", minimum=2),
            num_candidates=(
                min(5000, max(2000, 200 * d))
                if num_candidates is None
                else check_count(num_candidates, "num_candidates", minimum=2)
            ),
            depth=check_count(depth, "depth"),
            num_paths=check_count(num_paths, "num_paths"),
            seed=check_count(seed, "seed", minimum=0),
        )

    @property
    def is_reversed(self) -> bool:
        """Whether the objective is modelled with its sign changed: where it is a real number to be minimised."""
        return not self.maximize and self.outcome.is_real


def _check_outcome(outcome: Outcome, model: str) -> None:
    likelihood = outcome.likelihood
    if likelihood.num_inputs != 1:
        raise UnsupportedError(
            f"A trust region follows the best outcome of single points, but {type(likelihood).__name__} compares "
            f"{likelihood.num_inputs} of them. Use streamgp.Optimizer for comparisons."
        )
    if model == "exact" and not isinstance(likelihood, Gaussian):
        raise UnsupportedError(
            f"model='exact' needs a Gaussian likelihood, but it is {type(likelihood).__name__}. Use model='sparse'."
        )
