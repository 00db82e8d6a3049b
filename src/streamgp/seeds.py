"""Seeds that depend on counters, so that each use has its own and a run can be taken up anywhere."""

import numpy as np
import torch

__all__ = ["derived_seed", "seeded"]


def derived_seed(seed: int, *counters: int) -> int:
    """A seed for one use of many, each of which has other counters."""
    return int(np.random.SeedSequence([seed, *counters]).generate_state(1)[0])


def seeded(seed: int, *counters: int) -> torch.Generator:
    """A generator that starts from a derived seed."""
    return torch.Generator().manual_seed(derived_seed(seed, *counters))
