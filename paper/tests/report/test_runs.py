from dataclasses import replace

from paper.report.runs import describe_runs


def test_times_are_summed_and_days_span_all_runs(records):
    runs = describe_runs(records.all)
    assert runs.num_units == 12
    assert runs.seconds == 12 * 90.0
    assert runs.days == ("2025-06-01", "2025-06-03")
    assert runs.software == (("python", "3.12.1"), ("torch", "2.9.0"))


def test_a_unit_that_two_figures_show_counts_once(records):
    assert describe_runs([*records.all, *records.all]) == describe_runs(records.all)


def test_machines_and_versions_that_differ_are_all_named(records):
    first, second, *_ = records.all
    other = replace(second, machine="Another, 8 cores", software={"torch": "2.8.0", "numpy": ["odd"]})
    runs = describe_runs([first, other])
    assert runs.machines == (first.machine, "Another, 8 cores")
    assert dict(runs.software)["torch"] == "2.8.0, 2.9.0"


def test_of_no_runs_there_is_nothing_to_say():
    runs = describe_runs([])
    assert (runs.num_units, runs.seconds, runs.machines, runs.days) == (0, 0, (), ())
