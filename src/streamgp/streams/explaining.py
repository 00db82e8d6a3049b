"""Why a prediction is what it is: the experts in words, and the rows that are nearest."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp.streams.kernels import Stationary
from streamgp.streams.learner import StreamLearner

__all__ = ["ExpertOpinion", "Explanation", "NearRow", "explain"]

_NUM_NEAR = 3
# Of the function's variance, what points leave open at an input that is far out.
_FAR_OUT = 0.5


class ExpertOpinion(NamedTuple):
    """Forecast of one expert: its name, its weight, and the mean and the deviation of its prediction.

    Of classes, the mean is the probability that it gives to the one that is the most probable by all.
    """

    name: str
    weight: float
    mean: float
    deviation: float


class NearRow(NamedTuple):
    """A row of the buffer: how many rows ago it was, how many lengthscales away, its inputs and its target."""

    rows_ago: int
    distance: float
    inputs: tuple[float, ...]
    target: float


class Explanation(NamedTuple):
    """Why a prediction is what it is.

    Attributes:
        experts: What the experts expect, the most trusted first.
        nearest: The rows of the buffer that are most alike.
        is_far_out: Whether the function knows little of such inputs.
    """

    experts: tuple[ExpertOpinion, ...]
    nearest: tuple[NearRow, ...]
    is_far_out: bool

    def __str__(self) -> str:
        width = max(len(each.name) for each in self.experts)
        lines = [f"{'expert':<{width}}  weight       mean  deviation"]
        lines += [
            f"{each.name:<{width}}  {each.weight:6.1%} {each.mean:10.4g} {each.deviation:10.4g}"
            for each in self.experts
        ]
        for row in self.nearest:
            lines.append(f"{row.rows_ago} rows ago, {row.distance:.2g} lengthscales away: {row.target:.4g}")
        if self.is_far_out:
            lines.append("These inputs are far from all that was learned.")
        return "\n".join(lines)


def explain(learner: StreamLearner, X: Float[np.ndarray, "n d"]) -> tuple[Explanation, ...]:
    """Return, for each row, what the experts expect of it and which rows are most alike."""
    forecast, fitted, buffer = learner.predict(X), learner.fitted, learner.buffer
    assert fitted is not None
    kernel, scaled = fitted.prior.stream_kernel, fitted.units.inputs(X)
    stretch = kernel.inverse_lengthscales if isinstance(kernel, Stationary) else np.ones(X.shape[1])
    known, names = buffer.scaled_inputs[: buffer.num_rows], learner.expert_names
    weights, means, deviations = forecast.by_expert(len(names))
    explanations = []
    for i, x in enumerate(scaled):
        columns = (weights[i].tolist(), means[i].tolist(), deviations[i].tolist())
        opinions = [ExpertOpinion(*each) for each in zip(names, *columns, strict=True)]
        distance = np.sqrt((((known - x) * stretch) ** 2).sum(1))
        nearest = [
            NearRow(
                int(learner.clock - buffer.times[j]),
                float(distance[j]),
                tuple(buffer.inputs[j].tolist()),
                float(buffer.targets[j]),
            )
            for j in np.argsort(distance, kind="stable")[:_NUM_NEAR]
        ]
        opinions.sort(key=lambda each: -each.weight)
        slack = learner.slack(scaled[i : i + 1])
        explanations.append(Explanation(tuple(opinions), tuple(nearest), bool(slack > _FAR_OUT)))
    return tuple(explanations)
