"""A stream of classes: which parts pass inspection, while the machine drifts."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from numpy import ndarray

from streamgp.cli.demo.scene import AbstractScene, Track
from streamgp.cli.pictures import COLORS, style_axes
from streamgp.streaming.classifier import StreamingGPClassifier

__all__ = ["Parts", "PartsScene", "make_parts", "play_parts", "running_mean"]

_BLOCK = 20
_NUM_INDUCING = 50
# Parts over which a running share of right predictions is taken.
_WINDOW = 150
# Share of the stream before the drift begins.
_STEADY = 0.35
_NUM_STEPS = 80
_TEMPERATURES, _PRESSURES = (170.0, 230.0), (3.0, 7.0)


@final
@dataclass(frozen=True, eq=False)
class Parts:
    """Settings under which parts were made, and whether they passed.

    Attributes:
        inputs: Temperature and pressure.
        is_passed: What the inspection said.
        probability: The probability with which it said so.
    """

    inputs: Float[ndarray, "n 2"]
    is_passed: Bool[ndarray, " n"]
    probability: Float[ndarray, " n"]


@final
@dataclass(frozen=True, eq=False)
class PartsScene(AbstractScene):
    """Parts, and which were predicted rightly before they were inspected.

    Attributes:
        parts: The stream.
        first: Number of the first part that was predicted.
        is_right: By a classifier with default settings, one for each part from `first` on.
        is_right_remembering: By one that forgets nothing.
        surface: Probability to pass after the last part, on a grid of pressures and temperatures.
    """

    parts: Parts
    first: int
    is_right: Bool[ndarray, " k"]
    is_right_remembering: Bool[ndarray, " k"]
    surface: Float[ndarray, "r c"]

    def sentences(self) -> str:
        late = -len(self.is_right) // 3
        is_best = self._is_right_at_best()
        return (
            f"{len(self.parts.is_passed)} parts came off a machine that drifts, and each was predicted before it was "
            f"inspected. Of the last third, {self.is_right[late:].mean():.0%} were predicted rightly by default, "
            f"{self.is_right_remembering[late:].mean():.0%} when nothing was forgotten; who knows the machine reaches "
            f"{is_best[late:].mean():.0%}."
        )

    def draw(self, left: Axes, right: Axes) -> None:
        self._draw_map(left)
        self._draw_shares(right)

    def _is_right_at_best(self) -> Bool[ndarray, " k"]:
        parts, rest = self.parts, slice(self.first, None)
        return (parts.probability[rest] > 0.5) == parts.is_passed[rest]

    def _draw_map(self, axes: Axes) -> None:
        temperatures, pressures = np.linspace(*_TEMPERATURES, _NUM_STEPS), np.linspace(*_PRESSURES, _NUM_STEPS)
        levels = np.linspace(0.0, 1.0, 11)
        axes.contourf(temperatures, pressures, self.surface, levels=levels, cmap="RdYlBu", alpha=0.75)
        inputs = _grid()
        for time, style, label in ((0.0, ":", "window at the start"), (1.0, "-", "window now")):
            truth = _probability(inputs, np.full(len(inputs), time)).reshape(self.surface.shape)
            axes.contour(temperatures, pressures, truth, levels=[0.5], colors="black", linestyles=style, linewidths=1.3)
            axes.plot([], [], style, color="black", linewidth=1.3, label=label)
        latest = slice(-200, None)
        is_passed, X = self.parts.is_passed[latest], self.parts.inputs[latest]
        for is_kind, color, label in ((is_passed, "#0B3C6F", "passed"), (~is_passed, "#A4161A", "failed")):
            axes.plot(*X[is_kind].T, "o" if label == "passed" else "x", color=color, markersize=3.2, label=label)
        axes.set(xlim=_TEMPERATURES, ylim=_PRESSURES, xlabel="temperature (°C)", ylabel="pressure (bar)")
        axes.set_title("At the end; blue: likely to pass, red: to fail", fontsize=10)
        axes.legend(loc="upper right", fontsize=7.5, ncols=2, framealpha=0.9)

    def _draw_shares(self, axes: Axes) -> None:
        lines = (
            ("knowing the machine", self._is_right_at_best(), COLORS["truth"], 1.2),
            ("by default", self.is_right, COLORS["belief"], 2.0),
            ("forgetting nothing", self.is_right_remembering, COLORS["new data"], 1.4),
        )
        for label, is_right, color, width in lines:
            share = 100 * running_mean(is_right, _WINDOW)
            number = self.first + np.arange(len(is_right) - len(share), len(is_right)) + 1
            axes.plot(number, share, color=color, linewidth=width, label=label)
        begin = _STEADY * len(self.parts.is_passed)
        axes.axvline(begin, color="#BBBBBB", linewidth=1.0)
        axes.annotate("drift begins", (begin, 101), xytext=(4, 0), textcoords="offset points", fontsize=8)
        axes.set(xlabel="part", ylabel=f"% right, of the last {_WINDOW}", ylim=(48, 104))
        axes.set_yticks(range(50, 101, 10))
        axes.set_title("Predicted before inspected", fontsize=10)
        axes.legend(loc="lower left", fontsize=8, framealpha=0.9)
        style_axes(axes)


def make_parts(seed: int, num_parts: int) -> Parts:
    """Make parts at settings that scatter; which pass drifts with the machine after a steady beginning."""
    generator = np.random.default_rng(seed)
    inputs = np.stack([generator.normal(200.0, 11.0, num_parts), generator.normal(5.0, 0.75, num_parts)], axis=-1)
    inputs = np.clip(inputs, [_TEMPERATURES[0], _PRESSURES[0]], [_TEMPERATURES[1], _PRESSURES[1]])
    time = np.clip((np.linspace(0.0, 1.0, num_parts) - _STEADY) / (1.0 - _STEADY), 0.0, 1.0)
    probability = _probability(inputs, time)
    return Parts(inputs, generator.random(num_parts) < probability, probability)


def play_parts(*, seed: int, num_parts: int, track: Track) -> PartsScene:
    """Predict and then learn part after part, in blocks, by default and without forgetting.

    Args:
        seed: Seed of the data.
        num_parts: Length of the stream.
        track: Shows the progress.
    """
    parts = make_parts(seed, num_parts)
    following = StreamingGPClassifier(num_inducing=_NUM_INDUCING)
    remembering = StreamingGPClassifier(num_inducing=_NUM_INDUCING, half_life=None)
    predicted: dict[StreamingGPClassifier, list[ndarray]] = {following: [], remembering: []}
    first = num_parts // 10
    for start in track([0, *range(first, num_parts, _BLOCK)]):
        rows = slice(start, first if start == 0 else start + _BLOCK)
        for classifier, answers in predicted.items():
            if start > 0:
                answers.append(classifier.predict(parts.inputs[rows]))
            classifier.partial_fit(parts.inputs[rows], parts.is_passed[rows], classes=[False, True])
    rights = [np.concatenate(answers) == parts.is_passed[first:] for answers in predicted.values()]
    surface = following.predict_proba(_grid())[:, 1].reshape(_NUM_STEPS, _NUM_STEPS)
    return PartsScene(parts, first, is_right=rights[0], is_right_remembering=rights[1], surface=surface)


def running_mean(values: ndarray, window: int) -> Float[ndarray, " k"]:
    """Means of each `window` values in a row; of all, if there are fewer."""
    window = min(window, len(values))
    sums = np.cumsum(np.concatenate([[0.0], values]))
    return (sums[window:] - sums[:-window]) / window


def _probability(inputs: Float[ndarray, "n 2"], time: Float[ndarray, " n"]) -> Float[ndarray, " n"]:
    """An ellipse of good settings, which moves from the lower left to the upper right and turns harder to hit."""
    temperature, pressure = inputs.T
    across, along = (temperature - 193.0 - 17.0 * time) / 12.0, (pressure - 4.6 - 0.9 * time) / 0.9
    radius = across**2 + along**2 - 0.8 * across * along
    return 1.0 / (1.0 + np.exp(-5.0 * (1.0 - radius)))


def _grid() -> Float[ndarray, "g 2"]:
    temperatures, pressures = np.linspace(*_TEMPERATURES, _NUM_STEPS), np.linspace(*_PRESSURES, _NUM_STEPS)
    return np.stack(np.meshgrid(temperatures, pressures), axis=-1).reshape(-1, 2)
