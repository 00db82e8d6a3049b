"""Which results a figure is made from: the trials that all of its problems and methods have finished."""

from dataclasses import dataclass
from itertools import product
from typing import final

from streamgp.experiments.figure import Figure
from streamgp.experiments.record import Records

__all__ = ["Trials", "select_trials"]


@final
@dataclass(frozen=True)
class Trials:
    """Results of a figure.

    Attributes:
        records: Results of the seeds that every problem and method has.
        num_trials: Number of those seeds.
        num_left_out: Number of seeds that only some of them have.
        missing: Problems and methods without any result, as `"problem, method"`.
    """

    records: Records
    num_trials: int
    num_left_out: int
    missing: tuple[str, ...]


def select_trials(figure: Figure, records: Records) -> Trials:
    """Choose the results of a figure from those of its study.

    A comparison is made trial by trial, so a seed that a method has not finished is left out for all.

    Args:
        figure: The figure.
        records: All results of its study.
    """
    pairs = tuple(product(figure.problems, figure.methods))
    seeds = {pair: {record.seed for record in records.of(*pair)} for pair in pairs}
    shared = set.intersection(*seeds.values())
    chosen = [record for pair in pairs for record in records.of(*pair) if record.seed in shared]
    return Trials(
        Records(tuple(chosen)),
        num_trials=len(shared),
        num_left_out=len(set.union(*seeds.values()) - shared),
        missing=tuple(", ".join(pair) for pair in pairs if not seeds[pair]),
    )
