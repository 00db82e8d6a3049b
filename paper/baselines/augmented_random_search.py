"""Augmented random search over linear policies, after Mania, Guy and Recht."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from paper.problems.mujoco import ObservationScale, play_episode

__all__ = ["RandomSearchSettings", "SearchStep", "augmented_random_search", "search_step"]


@final
@dataclass(frozen=True)
class RandomSearchSettings:
    """How the search goes.

    Attributes:
        num_directions: Directions of a step, each tried forwards and backwards, for one episode each.
        num_used: Of these, how many of the best are followed; fewer than all is the variant called t.
        step_size: Length of a step.
        noise_scale: How far directions are tried.
        shift: Taken off the reward of each step, for robots that are paid to stay alive.
        is_scaled: Whether observations are scaled by all that was seen before, the second version.
    """

    num_directions: int = 8
    num_used: int = 8
    step_size: float = 0.02
    noise_scale: float = 0.03
    shift: float = 0.0
    is_scaled: bool = True


@final
@dataclass(frozen=True, eq=False)
class SearchStep:
    """Where the search is.

    Attributes:
        policy: The policy, a row for each action.
        scale: What observations are scaled by.
        num_episodes: Episodes so far.
    """

    policy: NDArray[np.float64]
    scale: ObservationScale
    num_episodes: int


def search_step(
    policy: NDArray[np.float64],
    directions: NDArray[np.float64],
    rewards: NDArray[np.float64],
    settings: RandomSearchSettings,
) -> NDArray[np.float64]:
    """Follow the best directions by their differences of rewards, over the standard deviation of these rewards.

    Args:
        policy: The policy.
        directions: Directions that were tried.
        rewards: Rewards `(n, 2)` forwards and backwards.
        settings: How the search goes.
    """
    best = np.argsort(-rewards.max(1), kind="stable")[: settings.num_used]
    spread = float(rewards[best].std())
    if spread == 0.0:
        return policy
    gains = rewards[best, 0] - rewards[best, 1]
    step = np.tensordot(gains, directions[best], axes=1) / (len(best) * spread)
    return policy + settings.step_size * step


def augmented_random_search(
    name: str, shape: tuple[int, int], settings: RandomSearchSettings, *, seed: int
) -> Iterator[SearchStep]:
    """Search without end, from the zero policy; yields where it is after each step.

    Args:
        name: Of the environment in Gymnasium.
        shape: Numbers of actions and observations.
        settings: How the search goes.
        seed: Of directions and starts.
    """
    random = np.random.default_rng(seed)
    policy, scale, count = np.zeros(shape), ObservationScale.empty(shape[1]), 0
    plain = ObservationScale.empty(shape[1])
    while True:
        directions = random.standard_normal((settings.num_directions, *shape))
        rewards = np.zeros((settings.num_directions, 2))
        seen = scale
        for index, direction in enumerate(directions):
            for side, sign in enumerate((1.0, -1.0)):
                start = int(random.integers(2**31 - 1))
                trial = policy + sign * settings.noise_scale * direction
                used = scale if settings.is_scaled else plain
                episode = play_episode(name, trial, seed=start, scale=used)
                rewards[index, side] = episode.reward - settings.shift * episode.num_steps
                seen = _merged(seen, used, episode.scale)
                count += 1
        policy, scale = search_step(policy, directions, rewards, settings), seen
        yield SearchStep(policy, scale if settings.is_scaled else plain, count)


def _merged(total: ObservationScale, before: ObservationScale, after: ObservationScale) -> ObservationScale:
    """Statistics with the observations that an episode has added to those from before it."""
    count = after.count - before.count
    if count == 0:
        return total
    mean = (after.count * after.mean - before.count * before.mean) / count
    shift = before.mean - mean
    squares = after.squares - before.squares - np.square(shift) * before.count * count / after.count
    step = mean - total.mean
    both = total.count + count
    return ObservationScale(
        both,
        total.mean + step * count / both,
        total.squares + np.maximum(squares, 0.0) + np.square(step) * total.count * count / both,
    )
