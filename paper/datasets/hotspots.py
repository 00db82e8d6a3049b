from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from paper.datasets.tables import read_table
from streamgp.checks import check_choice, check_count

__all__ = ["COUNTRIES", "Hotspots", "load_hotspots"]

# The country, and the prevalence above which a village is a hotspot: the thresholds of the paper's code.
_COUNTRIES = {
    "civ": ("Côte d'Ivoire", 0.1),
    "hti": ("Haiti", 0.1),
    "mwi": ("Malawi", 0.02),
    "phl": ("Philippines", 0.02),
}
COUNTRIES = tuple(_COUNTRIES)
_COLUMNS = ("lng", "lat", "bioclim1", "bioclim12", "bioclim15", "bioclim4", "dist_to_water_m", "elev_m")
_PREVALENCE = 9  # after the name of the disease


@final
@dataclass(frozen=True, eq=False)
class Hotspots:
    """Villages of a country, with the prevalence of a disease.

    Attributes:
        country: Name of the country.
        names: Names of the inputs.
        inputs: Coordinates and covariates, as in the file.
        prevalence: True share of people with the disease.
        threshold: Prevalence above which a village is a hotspot.
    """

    country: str
    names: tuple[str, ...]
    inputs: Float[Tensor, "n 8"]
    prevalence: Float[Tensor, " n"]
    threshold: float

    @property
    def coordinates(self) -> Float[Tensor, "n 2"]:
        """Longitude and latitude, in degrees."""
        return self.inputs[:, :2]

    @property
    def is_hotspot(self) -> Bool[Tensor, " n"]:
        """Whether the prevalence is above the threshold."""
        return self.prevalence > self.threshold

    def survey(self, seed: int, total_count: int = 100) -> Float[Tensor, " n"]:
        """Test people in every village: how many have the disease, drawn from a binomial.

        Args:
            seed: Seed of the draw; a trial draws once.
            total_count: People tested in each village.
        """
        total_count = check_count(total_count, "total_count")
        num_tested = torch.full_like(self.prevalence, total_count)
        return torch.binomial(num_tested, self.prevalence, generator=torch.Generator().manual_seed(seed))


def load_hotspots(country: str = "civ") -> Hotspots:
    """Load the villages of a country, of the data set `hotspots`.

    Args:
        country: `"civ"` (Côte d'Ivoire), `"hti"` (Haiti), `"mwi"` (Malawi) or `"phl"` (Philippines).
    """
    check_choice(country, COUNTRIES, "country")
    full_name, threshold = _COUNTRIES[country]
    rows = read_table(f"hotspots/{country}_data.csv", num_header=1, columns=[*range(len(_COLUMNS)), _PREVALENCE])
    return Hotspots(full_name, _COLUMNS, rows[:, :-1], rows[:, -1], threshold)
