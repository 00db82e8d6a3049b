"""What experts make of a state while time goes on, laid out as arrays."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
import torch
from jaxtyping import Float

from streamgp.streaming.experts import Experts

__all__ = ["Aging", "Scales"]


@final
@dataclass(frozen=True, eq=False)
class Aging:
    """What happens to states while time goes on by some rows.

    Attributes:
        root: What they are multiplied with.
        products: What their covariances are multiplied with.
        forgetting: Experts for which that is not one, as runs from a first to before a last.
        steps: The variance that they gain.
    """

    root: Float[np.ndarray, "e 1 k"]
    products: Float[np.ndarray, "e 1 k k"]
    forgetting: tuple[tuple[int, int], ...]
    steps: Float[np.ndarray, "e 1 k"]

    @classmethod
    def over(cls, num_rows: int, experts: Experts, size: int, *, level_noise: float) -> "Aging":
        """While some rows come.

        Args:
            num_rows: How many.
            experts: What is expected.
            size: Of the states, whose last entry is the level.
            level_noise: The noise variance with which the steps of the level are compared.
        """
        kept = experts.remembered(num_rows)[:, None, None].expand(-1, 1, size).clone()
        kept[..., -1] = 1.0
        steps = 1.0 - kept
        steps[..., -1] = (num_rows * level_noise * experts.level_steps).unsqueeze(-1)
        root = kept.sqrt().numpy()
        is_forgetting = [False, *(experts.half_lives < math.inf).tolist(), False]
        edges = [index for index, (one, two) in enumerate(pairwise(is_forgetting)) if one != two]
        runs = tuple(zip(edges[::2], edges[1::2], strict=True))
        return cls(root, root[..., None] * root[..., None, :], runs, steps.numpy())


@final
@dataclass(frozen=True, eq=False)
class Scales:
    """What of the experts enters into each row, for states of some size.

    Attributes:
        experts: The experts.
        level_noise: The noise variance with which the steps of levels are compared.
        loadings: What features, inputs and the level are multiplied with.
        amplitudes: What prior variances are multiplied with.
        aging: What happens to states while time goes on by one row.
    """

    experts: Experts
    level_noise: float
    loadings: Float[np.ndarray, "e 1 k 1"]
    amplitudes: Float[np.ndarray, "e 1 1"]
    aging: Aging

    @classmethod
    def of(cls, experts: Experts, num_inducing: int, num_dims: int, *, level_noise: float) -> "Scales":
        """For states of inducing values, linear weights and a level."""
        each = torch.stack([experts.amplitudes.sqrt(), experts.slopes, experts.has_level], -1)
        loadings = each.repeat_interleave(torch.tensor([num_inducing, num_dims, 1]), -1)
        aging = Aging.over(1, experts, loadings.shape[-1], level_noise=level_noise)
        amplitudes = experts.amplitudes[:, None, None]
        return cls(experts, level_noise, loadings[:, None, :, None].numpy(), amplitudes.numpy(), aging)

    def over(self, num_rows: int) -> Aging:
        """What happens while some rows come; kept, as blocks of rows have the same size, one after the other."""
        if num_rows == 1:
            return self.aging
        last: tuple[int, Aging] | None = self.__dict__.get("_last")
        if last is None or last[0] != num_rows:
            size = self.loadings.shape[-2]
            last = num_rows, Aging.over(num_rows, self.experts, size, level_noise=self.level_noise)
            self.__dict__["_last"] = last
        return last[1]
