import pytest

from paper.engine.plan import RunRequest, make_plans
from paper.engine.running import execute
from paper.schema.results import append_record
from paper.tests.tiny_figure import tiny_registry
from streamgp.errors import OptionError

TEXT = """
[mine]
num_trials = 3
seconds_per_unit = 2
[mine.settings]
pause = 0
sizes = [1]
label = "x"
"""


@pytest.fixture
def plan(tmp_path):
    """Makes the only plan of a request."""
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)

    def make(*names, **options):
        (plan,) = make_plans(RunRequest(names, config=path, **options), tmp_path)
        return plan

    with tiny_registry():
        yield make


def places(units):
    return [(unit.problem, unit.method, unit.seed) for unit in units]


def test_a_study_is_all_its_problems_methods_and_seeds(plan):
    units = plan("tiny").units
    assert len(set(units)) == len(units) == 2 * 5 * 3
    assert {unit.scale for unit in units} == {"mine"}
    assert [unit.seed for unit in units] == sorted(unit.seed for unit in units)


def test_a_figure_that_is_not_statistical_has_one_trial(plan):
    assert places(plan("tiny_figure").units) == [("left", "sum", 0), ("left", "process", 0)]
    assert plan("all").units == plan("tiny_figure").units
    assert len(plan("tiny_figure", num_trials=2).units) == 4


def test_a_unit_that_two_names_ask_for_runs_once(plan):
    assert set(plan("tiny", "tiny_figure", "tiny").units) == set(plan("tiny").units)
    assert len(plan("tiny", "tiny_figure", "tiny").units) == 30


def test_problems_methods_and_seeds_can_be_chosen(plan):
    chosen = plan("tiny", problems=("right",), methods=("sum",), num_trials=2, first_seed=5)
    assert places(chosen.units) == [("right", "sum", 5), ("right", "sum", 6)]


def test_units_that_have_run_are_not_run_again(plan, tmp_path):
    first, *rest = plan("tiny_figure").tasks
    append_record(execute(first), tmp_path)
    assert [task.unit for task in plan("tiny_figure").tasks] == [task.unit for task in rest]
    assert len(plan("tiny").tasks) == 29


def test_units_that_ran_with_other_settings_run_again(plan, tmp_path):
    (task, *_) = plan("tiny_figure").tasks
    append_record(execute(task), tmp_path)
    (tmp_path / "mine.toml").write_text(TEXT.replace('"x"', '"y"'))
    changed = plan("tiny_figure")
    assert len(changed.tasks) == 2
    assert "label x instead of y" in changed.issues[0].sentence


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        (("tinny",), {}, "There is no figure or study 'tinny'. Did you mean 'tiny'.* Figures: tiny_figure. Studies: t"),
        (("tiny",), {"methods": ("sums",)}, "There is no method 'sums' here. Did you mean 'sum'.* There are: sum, pro"),
        (("tiny",), {"problems": ("up",)}, "There is no problem 'up' here. There are: left, right."),
        (("tiny_figure",), {"methods": ("dies",)}, "There is no method 'dies' here. There are: sum, process."),
    ],
)
def test_names_that_do_not_exist_are_refused(plan, names, options, sentence):
    with pytest.raises(OptionError, match=sentence):
        plan(*names, **options)
