"""What was told stays with the study, also when its file is changed."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from filelock import FileLock

from streamgp.cli.optimize import notebook as notebook_module
from streamgp.cli.optimize.notebook import open_notebook
from streamgp.errors import FileFormatError, OptionError, SaveError


@pytest.fixture
def told(study):
    """A study of which two experiments are known and one is pending."""
    with open_notebook(study, None) as notebook:
        points = notebook.optimizer.ask(3)
        notebook.optimizer.tell(points[:2], torch.tensor([1.0, torch.nan]))
        notebook.optimizer.save(notebook.state)
    return study


def test_a_wider_range_and_another_value_keep_what_was_told(told):
    text = told.read_text().replace("high = 180", "high = 200").replace('"-OH"]', '"-OH", "ethanol"]')
    with open_notebook(told, None) as before:
        assert not before.notes
    told.write_text(text)
    with open_notebook(told, None) as after:
        assert "has been changed" in after.notes[0]
        assert len(after.optimizer.pending) == 1
        assert torch.equal(after.optimizer.y.isnan(), before.optimizer.y.isnan())
        assert after.optimizer.X[0] == pytest.approx(before.optimizer.X[0])
        assert after.num_asks == 1
        assert {one["solvent"] for one in after.optimizer.ask(12)} == {"water", "-OH", "ethanol"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[objectives.yield]", "[objectives.purity]", "Outcomes were yield, and are purity now"),
        ("[parameters.loading]", "[parameters.amount]", "A point needs a value of 'amount'"),
    ],
)
def test_changes_that_do_not_fit_are_refused(told, old, new, message):
    told.write_text(told.read_text().replace(old, new))
    with pytest.raises(FileFormatError, match=message), open_notebook(told, None):
        pass


def test_one_command_at_a_time(study, monkeypatch):
    monkeypatch.setattr(notebook_module, "_PATIENCE", 0.01)
    held = FileLock(study.with_name(".reaction.streamgp.lock"))
    with (
        held,
        pytest.raises(SaveError, match="Another command is at work on"),
        open_notebook(study, None),
    ):
        pass


def test_the_state_is_a_file_of_its_own(study):
    with pytest.raises(OptionError, match="is the study itself"), open_notebook(study, study):
        pass
    with pytest.raises(OptionError, match="the directory does not exist"), open_notebook(study, study / "no" / "x"):
        pass


def test_commands_at_the_same_time_lose_nothing(study):
    def tell(number):
        with open_notebook(study, None) as notebook:
            point = {"temperature": 100.0 + number, "loading": 0.1, "solvent": "water"}
            notebook.optimizer.tell(point, float(number))
            notebook.optimizer.save(notebook.state)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tell, range(6)))
    with open_notebook(study, None) as notebook:
        assert sorted(notebook.optimizer.y.flatten().tolist()) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
