"""A stream of counts: bookings in each hour, predicted a day ahead."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from numpy import ndarray

from streamgp.cli.demo.scene import AbstractScene, Track
from streamgp.cli.pictures import COLORS, style_axes
from streamgp.streaming.regressor import StreamingGPRegressor

__all__ = ["BookingsScene", "expected_bookings", "features", "make_bookings", "play_bookings"]

_DAY, _WEEK = 24, 168
_NUM_INDUCING = 60
# Quantiles of the predictions; the band that is drawn is between the second and the last but one.
_LEVELS = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@final
@dataclass(frozen=True, eq=False)
class BookingsScene(AbstractScene):
    """Counts, and what was predicted of them the day before.

    Attributes:
        counts: Bookings in each hour.
        first: The first hour that was predicted.
        quantiles: Predicted ones, for each hour from `first` on.
        mean: Predicted means.
    """

    counts: Float[ndarray, " n"]
    first: int
    quantiles: Float[ndarray, "k l"]
    mean: Float[ndarray, " k"]

    def sentences(self) -> str:
        seen = self.counts[self.first :]
        inside = np.mean((seen >= self.quantiles[:, 1]) & (seen <= self.quantiles[:, -2]))
        week_before = np.abs(seen - self.counts[self.first - _WEEK : -_WEEK]).mean()
        return (
            f"Bookings were counted for {len(self.counts)} hours, and after the first week predicted a day ahead. "
            f"{inside:.0%} fell into the band that should hold at least 90 %; the mean error was "
            f"{np.abs(seen - self.mean).mean():.1f} bookings, and {week_before:.1f} for the count a week before."
        )

    def draw(self, left: Axes, right: Axes) -> None:
        self._draw_week(left)
        self._draw_calibration(right)

    def _draw_week(self, axes: Axes) -> None:
        hours = np.arange(len(self.counts) - _WEEK, len(self.counts))
        hour = hours - hours[0]
        quantiles, color = self.quantiles[-_WEEK:], COLORS["belief"]
        for index, alpha, label in ((1, 0.18, "90 % band, a day ahead"), (3, 0.25, "50 % band")):
            low, high = quantiles[:, index], quantiles[:, -1 - index]
            axes.fill_between(hour, low, high, step="mid", color=color, alpha=alpha, linewidth=0, label=label)
        axes.plot(hour, self.mean[-_WEEK:], color=color, linewidth=1.6, label="mean")
        axes.plot(hour, expected_bookings(hours), "--", color=COLORS["truth"], linewidth=1.0, label="true rate")
        axes.plot(hour, self.counts[-_WEEK:], ".", color=COLORS["new data"], markersize=4.5, label="counted")
        axes.set_xticks(np.arange(0, _WEEK, _DAY) + _DAY / 2, _DAYS)
        axes.tick_params(axis="x", length=0)
        axes.set(xlim=(0, _WEEK - 1), ylim=(0, 1.25 * self.counts[-_WEEK:].max()), ylabel="bookings an hour")
        axes.set_title("The last week")
        axes.legend(loc="upper left", ncols=5, fontsize=8, framealpha=0.9)
        style_axes(axes)
        axes.grid(False, axis="x")
        for day in range(_DAY, _WEEK, _DAY):
            axes.axvline(day, color="#DDDDDD", linewidth=0.8, zorder=0)

    def _draw_calibration(self, axes: Axes) -> None:
        seen, levels = self.counts[self.first :, None], 100 * np.array(_LEVELS)
        # A count has no density: the share below a quantile lies between those with and without the quantile itself.
        below, at_most = (100 * share.mean(0) for share in (seen < self.quantiles, seen <= self.quantiles))
        axes.plot([0, 100], [0, 100], "--", color=COLORS["truth"], linewidth=1.0, label="perfect")
        axes.vlines(levels, below, at_most, color=COLORS["belief"], linewidth=4.0, label="observed")
        axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="predicted quantile (%)", ylabel="% of counts below it")
        axes.set_title("Is it calibrated?")
        axes.legend(loc="upper left", fontsize=8, framealpha=0.9)
        style_axes(axes)


def expected_bookings(hours: ndarray) -> Float[ndarray, " n"]:
    """The rate in each hour: two peaks a day, higher ones on the eve of days off, lower ones on them, and growth."""
    day, hour = (hours // _DAY) % 7, hours % _DAY
    is_off, is_eve = np.isin(day, (5, 6)), np.isin(day, (4, 5))
    noon = np.exp(-0.5 * ((hour - 11.5) / 2.6) ** 2) * np.where(is_off, 0.6, 1.0)
    evening = np.exp(-0.5 * ((hour - 19.0) / 2.2) ** 2) * np.where(is_eve, 1.7, 0.9)
    return (1.0 + 14.0 * noon + 16.0 * evening) * (1.0 + 0.012 * hours / _DAY)


def make_bookings(seed: int, num_weeks: int) -> Float[ndarray, " n"]:
    """Draw counts."""
    rate = expected_bookings(np.arange(num_weeks * _WEEK))
    return np.random.default_rng(seed).poisson(rate).astype(float)


def features(hours: ndarray) -> Float[ndarray, "n 5"]:
    """The hour of the day and of the week, each on a circle, and the day, for growth."""
    day, week = 2 * np.pi * hours / _DAY, 2 * np.pi * hours / _WEEK
    return np.stack([np.sin(day), np.cos(day), np.sin(week), np.cos(week), hours / _DAY], axis=-1)


def play_bookings(*, seed: int, num_weeks: int, track: Track) -> BookingsScene:
    """Learn the first week, then predict each day before it is learned.

    Args:
        seed: Seed of the data.
        num_weeks: Length of the stream.
        track: Shows the progress.
    """
    counts = make_bookings(seed, num_weeks)
    regressor = StreamingGPRegressor("poisson", num_inducing=_NUM_INDUCING)
    means, quantiles = [], []
    for start in track([0, *range(_WEEK, len(counts), _DAY)]):
        hours = np.arange(start, _WEEK if start == 0 else start + _DAY)
        if start > 0:
            mean, levels = regressor.predict(features(hours), quantiles=_LEVELS)
            means.append(mean)
            quantiles.append(levels)
        regressor.partial_fit(features(hours), counts[hours])
    return BookingsScene(counts, _WEEK, quantiles=np.concatenate(quantiles), mean=np.concatenate(means))
