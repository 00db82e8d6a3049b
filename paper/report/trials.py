"""Which results a figure is made from: the trials that all of its problems and methods have finished."""

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import final

from paper.schema.figure import Figure
from paper.schema.record import Records

__all__ = ["Trials", "select_trials"]

# The fewest that a claim is judged by: one has no standard error, and two that happen to be alike have hardly any.
FEWEST_JUDGED = 3


@final
@dataclass(frozen=True)
class Trials:
    """Results of a figure.

    Attributes:
        records: Results that the figure is made from.
        num_trials: Number of their seeds; the largest, where lines have different numbers.
        num_left_out: Number of seeds that are not used, as only some lines have them.
        missing: Problems and methods without any result, as `"problem, method"`.
        shorter: Problems and methods with fewer trials than others, with their number.
    """

    records: Records
    num_trials: int
    num_left_out: int
    missing: tuple[str, ...]
    shorter: tuple[tuple[str, int], ...] = ()

    def is_enough(self, figure: Figure) -> bool:
        """Whether a part of the claim can be judged: two lines with three trials each, or one of each line.

        Where there are published values, one line with three trials is enough.
        """
        if not figure.is_statistical or figure.needs_all:
            return self.num_trials >= (FEWEST_JUDGED if figure.is_statistical else 1)
        counts = Counter((record.problem, record.method) for record in self.records.all)
        num_needed = 1 if figure.has_published_values else 2
        return sum(count >= FEWEST_JUDGED for count in counts.values()) >= num_needed


def select_trials(figure: Figure, records: Records) -> Trials:
    """Choose the results of a figure from those of its study.

    A comparison is made trial by trial, so a seed that a method has not finished is left out for all; unless the
    figure says that it compares what is there.

    Args:
        figure: The figure.
        records: All results of its study.
    """
    pairs = tuple(product(figure.problems, figure.methods))
    seeds = {pair: {record.seed for record in records.of(*pair)} for pair in pairs}
    missing = tuple(", ".join(pair) for pair in pairs if not seeds[pair])
    everything = set.union(*seeds.values())
    if figure.needs_all:
        shared = set.intersection(*seeds.values())
        return Trials(records.shared(pairs), len(shared), len(everything - shared), missing)
    most = max(len(each) for each in seeds.values())
    # A line with a single trial is shown, and nothing is said of it yet: it has no error.
    used = [pair for pair in pairs if seeds[pair]]
    if not set(figure.needed_methods) <= {method for _, method in used}:
        return Trials(Records(()), 0, len(everything), missing)
    chosen = tuple(record for pair in used for record in records.of(*pair))
    shorter = tuple((", ".join(pair), len(seeds[pair])) for pair in pairs if 0 < len(seeds[pair]) < most)
    left_out = everything - {record.seed for record in chosen}
    return Trials(Records(chosen), most, len(left_out), missing, shorter)
