"""Suggestions that say why: plain points with what the model expects there, and what part of the rule chose them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from botorch.utils.multi_objective.pareto import is_non_dominated
from jaxtyping import Float
from torch import Tensor

from streamgp.display import shown_point
from streamgp.loops.best import most_wanted
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.prediction import ResponsePrediction, predict_objective
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState
from streamgp.loops.suggest import make_context
from streamgp.seeds import seeded

__all__ = ["Expected", "Reason", "Reasons", "SuggestedPoint", "SuggestedPoints", "SuggestedTensor", "explained"]

# Draws of several objectives, of which those beyond the front are counted.
_NUM_DRAWS = 1024


@final
@dataclass(frozen=True)
class Expected:
    """An outcome as it is expected at a point, without the noise of an observation.

    Attributes:
        mean: Expected response.
        lower: Lower end of the interval that holds it with probability 0.95.
        upper: Upper end.
    """

    mean: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ({self.lower:.4g} to {self.upper:.4g})"


@final
@dataclass(frozen=True, repr=False)
class Reason:
    """Why a point was suggested.

    Attributes:
        rule: The part of the rule that chose it, in words.
        expected: What is expected of each outcome there, by name; empty before there is a model.
        improves: Probability that it is better than the best point so far, or beyond the front of several objectives;
            None before there is a model.
        fails: Probability that it breaks a constraint, or that the evaluation fails; None where neither is modeled.
    """

    rule: str
    expected: Mapping[str, Expected]
    improves: float | None = None
    fails: float | None = None

    def __str__(self) -> str:
        parts = [self.rule, *(f"{name} {one}" for name, one in self.expected.items())]
        if self.improves is not None:
            parts.append(f"better with {100.0 * self.improves:.0f} %")
        if self.fails is not None:
            parts.append(f"fails with {100.0 * self.fails:.0f} %")
        return ", ".join(parts)

    __repr__ = __str__

    def to_row(self) -> dict[str, Any]:
        """The reason as cells of a table, by the name of their column."""
        row: dict[str, Any] = {"why": self.rule}
        for name, one in self.expected.items():
            row |= {f"{name} expected": one.mean, f"{name} from": one.lower, f"{name} to": one.upper}
        if self.improves is not None:
            row["chance to improve"] = self.improves
        if self.fails is not None:
            row["chance to fail"] = self.fails
        return row


class Reasons:
    """Reasons of points, worked out when somebody looks at them, or when the next points are asked for.

    Then the model is let go, so that suggestions that are kept hold no models of long ago.
    """

    def __init__(self, state: LoopState, settings: LoopSettings, points: Tensor, rules: tuple[str, ...]) -> None:
        """Keep what they follow from.

        Args:
            state: In which they were chosen.
            settings: Of the loop.
            points: As the loop has them.
            rules: The part of the rule that chose each, in words.
        """
        self._source: tuple[LoopState, LoopSettings, Tensor, tuple[str, ...]] | None = (state, settings, points, rules)

    @cached_property
    def rows(self) -> tuple[Reason, ...]:
        """The reason of each point."""
        assert self._source is not None  # as this is worked out once
        state, settings, points, rules = self._source
        self._source = None
        rules = rules or ("",) * len(points)
        if state.surrogate is None or not len(points):
            return tuple(Reason(rule, {}) for rule in rules)
        inputs = settings.space.inputs(points)
        found = [predict_objective(state, settings, inputs, output=j) for j in range(len(settings.outcomes))]
        improves, fails = _chances(state, settings, inputs, found)
        return tuple(
            Reason(
                rule,
                {
                    name: Expected(float(one.mean[i]), float(one.lower[i]), float(one.upper[i]))
                    for name, one in zip(settings.names, found, strict=True)
                },
                None if improves is None else float(improves[i]),
                None if fails is None else float(fails[i]),
            )
            for i, rule in enumerate(rules)
        )


@torch.no_grad()
def _chances(
    state: LoopState, settings: LoopSettings, inputs: Float[Tensor, "q d"], found: list[ResponsePrediction]
) -> tuple[Float[Tensor, " q"] | None, Float[Tensor, " q"] | None]:
    """Probabilities that points improve on the best of what is known, and that they fail."""
    if isinstance(settings.space, PoolSpace):
        return None, None  # whose members are not looked through for the best of them
    context = make_context(state, settings)
    objective, posterior = context.objective, context.model.posterior(inputs)
    kept = objective.feasibility(posterior)
    fails = None if not kept.shape[-1] else 1.0 - kept.prod(-1)
    known: Any = context.model.posterior(context.baseline)
    scores, sure = objective.scores(known.mean), objective.feasibility(known).prod(-1)
    weights = inputs.new_tensor(objective.weights)
    means = torch.stack([one.latent_mean for one in found[: len(weights)]], dim=-1) * weights
    stds = torch.stack([one.latent_variance for one in found[: len(weights)]], dim=-1).clamp_min(0.0).sqrt()
    if len(weights) == 1:
        best = scores[most_wanted(scores[:, 0], sure), 0]
        return torch.special.ndtr((means[:, 0] - best) / stds[:, 0].clamp_min(1e-12)), fails
    front = scores[sure >= min(0.5, float(sure.max()))]
    front = front[is_non_dominated(front)]
    draws = torch.randn(_NUM_DRAWS, *means.shape, generator=seeded(0), dtype=means.dtype) * stds + means
    is_beaten = (front >= draws.unsqueeze(-2)).all(-1).any(-1)
    return 1.0 - is_beaten.double().mean(0), fails


class SuggestedPoint(dict[str, Any]):
    """A point as a dictionary that can be changed like any other, with the reason why it was suggested.

    Copies, and what is pickled, are plain dictionaries.
    """

    def __init__(self, values: Mapping[str, Any], reasons: Reasons, row: int) -> None:
        """Keep the values, and where the reason is."""
        super().__init__(values)
        self._reasons, self._row = reasons, row

    @property
    def why(self) -> Reason:
        """The reason why it was suggested."""
        return self._reasons.rows[self._row]

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class SuggestedPoints(list[Any]):
    """Points in a list like any other, with the reasons why they were suggested, which it shows."""

    def __init__(self, points: list[Any], reasons: Reasons) -> None:
        """Keep the points, and their reasons."""
        super().__init__(points)
        self._reasons = reasons

    @property
    def why(self) -> tuple[Reason, ...]:
        """The reason of each point."""
        return self._reasons.rows

    def __repr__(self) -> str:
        return _lines(super().__repr__(), self, self.why)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([dict(one) if isinstance(one, dict) else one for one in self],)


class SuggestedTensor(Tensor):
    """Points in a tensor like any other, with the reasons why they were suggested, which it shows.

    What is computed from it, copies, and what is pickled, are plain tensors.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment] # as of Parameter
    _reasons: Reasons

    @property
    def why(self) -> tuple[Reason, ...]:
        """The reason of each point."""
        return self._reasons.rows

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override] # as PyTorch's own is typed
        return _lines(repr(self.as_subclass(Tensor)), self.tolist(), self.why)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.as_subclass(Tensor).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.as_subclass(Tensor).clone()


def explained(shown: Any, reasons: Reasons) -> Any:
    """Points as the user has them, with reasons.

    Args:
        shown: A tensor, or a list of dictionaries or of names.
        reasons: Of these, in their order.
    """
    if isinstance(shown, Tensor):
        points: Any = shown.as_subclass(SuggestedTensor)
        points._reasons = reasons
        return points
    rows = [SuggestedPoint(one, reasons, i) if isinstance(one, dict) else one for i, one in enumerate(shown)]
    return SuggestedPoints(rows, reasons)


def _lines(plain: str, points: Any, reasons: tuple[Reason, ...]) -> str:
    """Points with a line on each, if the reasons are those of the points that are there."""
    if len(points) != len(reasons) or not reasons:
        return plain
    return "\n".join([plain, *(f"# {shown_point(one)}: {why}" for one, why in zip(points, reasons, strict=True))])
