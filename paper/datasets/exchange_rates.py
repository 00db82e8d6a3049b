from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.datasets.tables import read_table
from streamgp.checks import check_choice, check_count
from streamgp.errors import ValueRangeError

__all__ = ["CURRENCIES", "Series", "load_exchange_rates"]

CURRENCIES = ("XAU", "XAG", "XPT", "CAD", "EUR", "JPY", "GBP", "CHF", "AUD", "HKD", "NZD", "KRW", "MXN")
_MISSING = -1.0


@final
@dataclass(frozen=True, eq=False)
class Series:
    """A series in time, both in units of its standard deviation and around its mean.

    Attributes:
        x: Times.
        y: Values.
    """

    x: Float[Tensor, " n"]
    y: Float[Tensor, " n"]


def load_exchange_rates(column: str = "CAD", num_days: int = 60) -> Series:
    """Load the first trading days of 2007 of one of the `exchange_rates`.

    Args:
        column: A currency or metal, one of `CURRENCIES`; its price of one US dollar.
        num_days: Number of days, at most 251; index and value are standardized over them.

    Raises:
        ValueRangeError: If values of these days are missing, or if there are not so many days.
    """
    check_choice(column, CURRENCIES, "column")
    num_days = check_count(num_days, "num_days", minimum=2)
    values = read_table("fx/fx2007-processed.csv", columns=[CURRENCIES.index(column)]).squeeze(-1)
    if num_days > len(values):
        raise ValueRangeError(f"num_days must be at most {len(values)}, the trading days of 2007, but is {num_days}.")
    values = values[:num_days]
    num_missing = int((values == _MISSING).sum())
    if num_missing:
        raise ValueRangeError(
            f"{num_missing} of the first {num_days} days of {column} are missing. Choose another column, "
            "for example 'CAD', which is complete."
        )
    return Series(_standardized(torch.arange(num_days, dtype=torch.float64)), _standardized(values))


def _standardized(values: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    return (values - values.mean()) / values.std()
