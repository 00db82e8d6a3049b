from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.datasets.tables import read_table
from streamgp.checks import check_choice, check_count
from streamgp.errors import ValueRangeError

__all__ = ["Malaria", "load_malaria"]

# Columns of the file: longitude, latitude, rate, and the standard deviations.
_LONGITUDE, _LATITUDE, _RATE = 0, 1, 4
_DEVIATIONS = {"standin": 5, "temporal": 6}
# Added to each noise variance, as in the paper's code.
_SMALLEST_VARIANCE = 1e-6


@final
@dataclass(frozen=True, eq=False)
class Malaria:
    """Pixels of a map, of which some may be measured and others are predicted.

    Attributes:
        pool_X: Pixels that may be measured; longitude and latitude, each scaled to [0, 1] over all pixels.
        pool_y: Rate of infection there.
        pool_noise_variance: Variance of a measurement there.
        test_X: Pixels that are held out, scaled likewise.
        test_y: Rate of infection there.
        coordinates: Longitude and latitude of the pool, in degrees.
        test_coordinates: Longitude and latitude of the held-out pixels, in degrees.
    """

    pool_X: Float[Tensor, "n 2"]  # noqa: N815
    pool_y: Float[Tensor, " n"]
    pool_noise_variance: Float[Tensor, " n"]
    test_X: Float[Tensor, "t 2"]  # noqa: N815
    test_y: Float[Tensor, " t"]
    coordinates: Float[Tensor, "n 2"]
    test_coordinates: Float[Tensor, "t 2"]


def load_malaria(seed: int, *, num_test: int = 10_000, noise: str = "standin") -> Malaria:
    """Load the data set `malaria`: Nigeria in 2015, in place of the map of 2017 that the paper uses.

    Args:
        seed: Seed of the choice of held-out pixels.
        num_test: Number of held-out pixels; the others are the pool, in the order of the file.
        noise: Standard deviation of a measurement: a fixed share of the rate (`"standin"`), or the deviation of the
            pixel over the years 2011 to 2015 (`"temporal"`). Both are assumptions.
    """
    check_choice(noise, tuple(_DEVIATIONS), "noise")
    num_test = check_count(num_test, "num_test")
    columns = [_LONGITUDE, _LATITUDE, _RATE, _DEVIATIONS[noise]]
    rows = read_table("malaria/nigeria_pfpr_2015_standin.csv.gz", num_header=1, columns=columns)
    if num_test >= len(rows):
        raise ValueRangeError(
            f"num_test must be below {len(rows)}, the number of pixels, but is {num_test}. Leave some for the pool."
        )
    is_test = torch.zeros(len(rows), dtype=torch.bool)
    is_test[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:num_test]] = True
    coordinates, rate, deviation = rows[:, :2], rows[:, 2], rows[:, 3]
    lower, upper = coordinates.amin(0), coordinates.amax(0)
    X = (coordinates - lower) / (upper - lower)
    variance = deviation.square() + _SMALLEST_VARIANCE
    return Malaria(
        pool_X=X[~is_test],
        pool_y=rate[~is_test],
        pool_noise_variance=variance[~is_test],
        test_X=X[is_test],
        test_y=rate[is_test],
        coordinates=coordinates[~is_test],
        test_coordinates=coordinates[is_test],
    )
