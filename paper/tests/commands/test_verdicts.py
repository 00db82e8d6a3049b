import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from paper.commands.verdicts import compare_results, judge_all, verdicts_as_json
from paper.schema.results import append_record, load_records
from streamgp.errors import OptionError

RESULTS = Path(__file__).parents[2] / "results"


def test_verdicts_are_json_with_effects_intervals_and_numbers_of_trials(tmp_path):
    entries = json.loads(verdicts_as_json(judge_all(RESULTS, "full", ("fig7", "fig1"), home=tmp_path)))
    assert [entry["figure"] for entry in entries] == ["fig7", "fig1"]
    part = entries[0]["parts"][0]
    assert part["low"] < part["effect"] < part["high"]
    assert entries[0]["trials"] == [part["num_trials"]] * 2
    assert not entries[0]["few_trials"]
    assert entries[0]["settings"]
    assert entries[1]["trials"] is None  # nothing is left to chance


def copied(directory: Path, change) -> None:
    """The full results of Fig. 7, changed."""
    for record in load_records("exchange_rates", "full", RESULTS)[0].all[:3]:
        rmse = np.asarray(record.outcome["rmse_all"], dtype=float)
        append_record(replace(record, outcome={**record.outcome, "rmse_all": change(rmse).tolist()}), directory)


def compared(directory: Path) -> str:
    console = Console(record=True, width=250)
    console.print(compare_results(directory, RESULTS))
    return console.export_text()


def test_results_of_another_processor_are_told_from_others(tmp_path):
    copied(tmp_path / "same", lambda rmse: rmse * (1.0 + 1e-5))
    copied(tmp_path / "near", lambda rmse: rmse * 1.01)
    copied(tmp_path / "far", lambda rmse: rmse + 10.0)
    assert "the same" in compared(tmp_path / "same")
    assert "within two standard deviations of recorded seeds" in compared(tmp_path / "near")
    assert "beyond two standard deviations of recorded seeds" in compared(tmp_path / "far")


def test_without_shared_units_a_command_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"Run one: python -m paper run fig8 --results"):
        compare_results(tmp_path, RESULTS)
