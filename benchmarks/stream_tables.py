"""The tables of `benchmarks/streams.py`: ours beside each rival, and beside the targets."""

import math
from collections.abc import Iterator

from rich.table import Table
from stream_rivals import BATCH, METHODS
from stream_units import Unit

Results = dict[Unit, dict[str, float]]
OURS = "streamgp"
# How much worse than the batch fit ours may be: share of the RMSE, and nats of the NLPD, by the order of rows.
MOST_RMSE = {"random": 0.02, "sorted": 0.05}
MOST_NLPD = {"random": 0.02, "sorted": math.inf}
COLUMNS = (
    "order",
    "b",
    "method",
    "RMSE first",
    "NLPD first",
    "RMSE",
    "NLPD",
    "accuracy",
    "RMSE, %",
    "NLPD less",
    "ms/row",
    "median",
    "predict",
    "kB",
    "undone",
    "seeds",
    "",
)
LEGEND = """Means over seeds. First: predicted before it is learned; the others are held out. RMSE, % and NLPD less: of
and than the batch fit. ms/row: to learn, refits included; median: of single steps; predict: ms to predict a row.
kB: largest state. Undone: refits that were taken back. Targets: RMSE at most 102 % and NLPD at most 0.02 more in
random order, RMSE at most 105 % sorted."""


def stream_tables(results: Results) -> Iterator[Table]:
    """One table for each data set."""
    for name in dict.fromkeys(unit.data for unit in results):
        table = Table(title=name)
        for column in COLUMNS:
            table.add_column(column, justify="left" if column in ("order", "method") else "right", no_wrap=True)
        groups: dict[tuple[str, int, str], Results] = {}
        for unit, result in results.items():
            if unit.data == name:
                groups.setdefault((unit.order, unit.block, unit.method), {})[unit] = result
        place = {method: number for number, method in enumerate(METHODS)}
        before = None
        for key in sorted(groups, key=lambda key: (key[1] > 0, key[0], key[1], place[key[2]])):
            if before is not None and before != key[:2]:
                table.add_section()
            before = key[:2]
            table.add_row(*_row(key, groups[key], results))
        yield table


def _row(key: tuple[str, int, str], group: Results, results: Results) -> tuple[str, ...]:
    order, block, method = key
    share = _mean(result["held_out_rmse"] / _batch(unit, results)["held_out_rmse"] for unit, result in group.items())
    loss = _mean(result["held_out_nlpd"] - _batch(unit, results)["held_out_nlpd"] for unit, result in group.items())
    verdict = ""
    if method == OURS and not math.isnan(share):
        is_reached = share <= 1 + MOST_RMSE[order] and loss <= MOST_NLPD[order]
        verdict = "reached" if is_reached else "NOT reached"

    def show(name: str, form: str, factor: float = 1.0) -> str:
        value = _mean(factor * result[name] for result in group.values() if name in result)
        return "" if math.isnan(value) else format(value, form)

    return (
        order if block else "",
        str(block) if block else "all",
        method,
        show("prequential_rmse", ".4f"),
        show("prequential_nlpd", ".4f"),
        show("held_out_rmse", ".4f"),
        show("held_out_nlpd", ".4f"),
        show("held_out_accuracy", ".4f"),
        "" if method == BATCH or math.isnan(share) else f"{100 * share:.1f}",
        "" if method == BATCH or math.isnan(loss) else f"{loss:+.4f}",
        show("learn_seconds_per_row", ".3f", 1e3),
        show("median_seconds_per_row", ".3f", 1e3),
        show("predict_seconds_per_row", ".3f", 1e3),
        show("state_bytes", ".0f", 1e-3),
        f"{show('num_undone', '.1f')} of {show('num_refits', '.1f')}" if show("num_refits", ".1f") else "",
        str(len(group)),
        verdict,
    )


def _batch(unit: Unit, results: Results) -> dict[str, float]:
    nothing = {"held_out_rmse": math.nan, "held_out_nlpd": math.nan}
    return results.get(unit._replace(order="random", block=0, method=BATCH), nothing)


def _mean(values: Iterator[float]) -> float:
    each = list(values)
    return sum(each) / len(each) if each else math.nan
