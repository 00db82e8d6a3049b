"""`streamgp survey`: from a table of places to a list of those to survey next."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from streamgp.cli.outputs import write_together
from streamgp.cli.pictures import save_figure
from streamgp.cli.printing import say, show_table
from streamgp.cli.survey.columns import SurveyColumns, choose_survey_columns
from streamgp.cli.survey.learner import choose_acquisition, expected_tests, is_predictable, make_learner
from streamgp.cli.survey.map import draw_survey
from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.places import Places, read_places
from streamgp.cli.survey.pool import SurveyPool, make_pool
from streamgp.cli.survey.tables import SurveyTable, all_table, next_table, printed_table
from streamgp.errors import StreamGPWarning
from streamgp.loops import PoolSpace
from streamgp.pools import PoolLearner
from streamgp.tables.lines import Lines
from streamgp.tables.records import open_reader, write_table

__all__ = ["run_survey"]

# Rows of the table of chosen places that are printed.
_MOST_SHOWN = 20


def run_survey(options: SurveyOptions, *, console: Console | None = None) -> PoolLearner:
    """Learn from the places that were surveyed, choose the next ones, and write all files.

    Nothing is written if anything fails.

    Args:
        options: What to do.
        console: Where text goes; standard output if None.

    Returns:
        The learner, of which the chosen places are pending.
    """
    # Sums of several threads are not the same to the last bit, and the same seed should give the same places.
    torch.set_num_threads(1)
    console = console or Console()
    console.quiet = options.is_quiet
    columns, places = _read(options)
    pool = make_pool(places.places, options.response)
    say(*columns.notes, *places.notes, *pool.notes, *_describe(columns, pool, options), console=console)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StreamGPWarning)
        learner = make_learner(pool, options)
        chosen = _members(learner, learner.ask(options.number))
        prediction = learner.predict() if is_predictable(pool, options) else None
    warned = sorted({f"Warning: {each.message}" for each in caught if issubclass(each.category, StreamGPWarning)})
    say(*warned, console=console)
    table = next_table(places.places, pool, prediction, chosen=chosen, options=options)
    writers = {options.output_path: _table_writer(table)}
    if options.predictions is not None and prediction is not None:
        writers[options.predictions] = _table_writer(all_table(places.places, pool, prediction, options=options))
    if options.map is not None:
        figure = draw_survey(pool, prediction, chosen=chosen, options=options)
        writers[options.map] = partial(save_figure, figure)
    if options.save is not None:
        writers[options.save] = learner.save
    write_together(writers)
    show_table("Where to go next", *printed_table(table, options), console=console, most_rows=_MOST_SHOWN)
    say(f"Written: {', '.join(map(str, writers))}.", console=console)
    return learner


def _members(learner: PoolLearner, chosen: Any) -> Tensor:
    """Indices of members that may be given by name."""
    space: PoolSpace = learner.to_parts()["settings"].space
    return space.read(chosen)


def _read(options: SurveyOptions) -> tuple[SurveyColumns, Places]:
    with Lines(options.source) as lines:
        reader = open_reader(lines)
        records = tuple(reader.records())
    columns = choose_survey_columns(reader.names, records, options)
    return columns, read_places(records, columns, options)


def _table_writer(table: SurveyTable) -> Callable[[Path], None]:
    return partial(write_table, header=table.header, rows=table.rows)


def _describe(columns: SurveyColumns, pool: SurveyPool, options: SurveyOptions) -> list[str]:
    """Sentences that say what the choice is based on."""
    num_surveyed = int(pool.is_surveyed.sum())
    sentences = [
        f"{len(pool.y)} places, {num_surveyed} of them surveyed, described by {', '.join(columns.inputs)}.",
    ]
    acquisition = choose_acquisition(pool, options)
    if not is_predictable(pool, options):
        how = "drawn at random" if acquisition == "random" else "spread over the map and the covariates"
        sentences.append(f"{_why_not(pool)}: the next places are {how}, and nothing is predicted.")
        if options.predictions is not None:
            sentences.append(f"{options.predictions} is not written.")
        return sentences
    sentences.append(f"The next places are chosen by {acquisition}.")
    if options.response == "prevalence" and acquisition != "random":
        sentences.append(f"Of each, {expected_tests(pool):g} tests are expected, the median of the surveyed places.")
    return sentences


def _why_not(pool: SurveyPool) -> str:
    """Why nothing can be predicted."""
    if not pool.is_surveyed.any():
        return "Nothing has been surveyed yet"
    return "Nothing was found at any place" if not pool.y.nansum() else "Every test was positive"
