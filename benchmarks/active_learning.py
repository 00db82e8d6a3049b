"""Finding hotspots in Côte d'Ivoire: accuracy, error and seconds of a step, beside the published numbers.

    python benchmarks/active_learning.py [--trials 20] [--scale quick | full | FILE.toml] [--methods ...] [--jobs 1]
                                         [--results DIR] [--show]

A unit is a method and a seed of the study `hotspots`, run and kept as `python -m paper run` does: finished units are
not run again. Seconds are those of the processor, with one thread. With --show nothing is run. Data sets come from
where `python -m paper data` finds them.

Reported: accuracy and mean squared error of the prevalence on villages that were not visited, after 100, 150 and 199
villages, mean and two standard errors over seeds; mean seconds of a fit (refits that were not due take none) and of a
look-ahead over all villages that are left, with 16 outcomes for each. To reach: accuracy of at least 0.872 and error of
at most 0.0119 at 199, and a look-ahead of at most 2 s on one core.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from paper.commands.run import run_plans
from paper.engine.plan import RunRequest, make_plans
from paper.plots.village_survey import PROBLEM, survey_table
from paper.registry import find_study
from paper.schema.configuration import SCALES
from paper.schema.record import Records

STUDY = find_study("hotspots")
CAPTIONS = {"accuracy": "Accuracy of hotspots", "error": "Mean squared error of the prevalence"}
console = Console()


def show(records: Records, methods: tuple[str, ...]) -> None:
    for name, caption in CAPTIONS.items():
        content = survey_table(records, name, caption=caption, methods=methods)
        table = Table(title=content.caption)
        for column in content.header:
            table.add_column(column, justify="left" if column == "method" else "right")
        for row in content.rows:
            table.add_row(*row)
        console.print(table)
    for method in methods:
        fits, choices = (
            np.concatenate(records.outcomes(PROBLEM, method, name)) for name in ("fit_seconds", "choice_seconds")
        )
        console.print(
            f"{STUDY.methods[method]}, {len(records.of(PROBLEM, method))} seeds: fit median {np.median(fits):.3g} s, "
            f"largest {fits.max():.3g} s; look-ahead median {np.median(choices):.3g} s, largest {choices.max():.3g} s",
            soft_wrap=True,
            highlight=False,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--scale", default="quick", help="quick, full, or a file with settings")
    parser.add_argument(
        "--methods", nargs="+", default=["svgp-entropy", "svgp-response", "svgp-random"], choices=list(STUDY.methods)
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("paper/results"))
    parser.add_argument("--show", action="store_true", help="run nothing")
    options = parser.parse_args()
    is_own = options.scale not in SCALES
    request = RunRequest(
        names=(STUDY.name,),
        scale="full" if is_own else options.scale,
        config=Path(options.scale) if is_own else None,
        num_trials=options.trials,
        problems=(PROBLEM,),
        methods=tuple(options.methods),
    )
    if not options.show:
        run_plans(console, make_plans(request, options.results), options.results, num_jobs=options.jobs)
    (plan,) = make_plans(request, options.results)
    finished = tuple(method for method in options.methods if plan.records.of(PROBLEM, method))
    if not finished:
        console.print("No unit of these methods and settings has run yet.")
        return
    show(plan.records, finished)


if __name__ == "__main__":
    main()
