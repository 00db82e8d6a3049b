from dataclasses import dataclass

import pytest

from paper import registry
from paper.schema.configuration import (
    SCALES,
    Configuration,
    read_configuration,
    read_own_configuration,
    suggest,
)
from paper.schema.study import Study
from streamgp.errors import OptionError


@dataclass(frozen=True)
class Settings:
    num_steps: int
    rate: float
    is_fast: bool
    label: str
    sizes: tuple[int, ...]
    corner: tuple[float, str]


STUDY = Study("own", {"left": ""}, {"sum": ""}, Settings, lambda problem, method, seed, settings: {})
TEXT = """
[mine]
num_trials = 3
seconds_per_unit = 2
[mine.settings]
num_steps = 10
rate = 1
is_fast = true
label = "x"
sizes = [1, 2]
corner = [0.5, "y"]
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text: str) -> Configuration:
        path = tmp_path / "own.toml"
        path.write_text(text)
        return read_own_configuration(STUDY, path)

    return read_text


def test_a_file_becomes_settings_of_the_right_types(read):
    configuration = read(TEXT)
    assert configuration == Configuration("mine", 3, 2.0, Settings(10, 1.0, True, "x", (1, 2), (0.5, "y")))
    assert isinstance(configuration.settings.rate, float)
    assert configuration.values["sizes"] == [1, 2]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("num_steps = 10", "num_step = 10", r"own.toml, \[mine.settings\]: the key 'num_step' is unknown. "
            "Did you mean 'num_steps'\\? Allowed are num_steps, rate, is_fast"),
        ("num_trials = 3", "trails = 3", r"\[mine\]: the key 'trails' is unknown. Did you mean 'num_trials'\?"),
        ("num_steps = 10", "", r"\[mine.settings\]: the keys num_steps are missing. Set all of num_steps, rate"),
        ("num_trials = 3", "", r"\[mine\]: the keys num_trials are missing"),
        ("num_steps = 10", "num_steps = 10.5", "num_steps must be a whole number, but is 10.5"),
        ("num_steps = 10", "num_steps = true", "num_steps must be a whole number, but is True"),
        ("rate = 1", "rate = false", "rate must be a finite number, but is False"),
        ("rate = 1", "rate = nan", "rate must be a finite number, but is nan"),
        ("is_fast = true", "is_fast = 1", "is_fast must be true or false, but is 1"),
        ('label = "x"', "label = 1", "label must be a text, but is 1"),
        ("sizes = [1, 2]", "sizes = 1", "sizes must be a list, but is 1"),
        ("sizes = [1, 2]", "sizes = [1, 2.5]", r"sizes\[1\] must be a whole number, but is 2.5"),
        ('corner = [0.5, "y"]', "corner = [0.5]", r"corner must be a list with 2 entries, but is \[0.5\]"),
        ("num_trials = 3", "num_trials = 0", "num_trials and seconds_per_unit must be positive, but are 0, 2.0"),
        ("[mine.settings]", "settings = 3\n[more]", "must hold one table, for example .mine., but holds mine, more"),
        ("mine", "quick", "and not quick or full, but names it .quick."),
        ("mine", '"../mine"', r"must name its table with letters, digits"),
        ("num_trials = 3", "num_trials", "own.toml cannot be read as TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_said(read, old, new, sentence):
    text = TEXT.replace(old, new)
    with pytest.raises(OptionError, match=sentence):
        read(text)


def test_settings_that_are_no_table_are_refused(read):
    with pytest.raises(OptionError, match=r"\[mine.settings\] must be a table with the keys num_steps, .* but is 3"):
        read("[mine]\nnum_trials = 3\nseconds_per_unit = 2\nsettings = 3\n")


def test_a_file_that_is_absent_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"absent.toml cannot be read \(No such file or directory\)"):
        read_own_configuration(STUDY, tmp_path / "absent.toml")


def test_only_near_names_are_suggested():
    assert suggest("nun_steps", ["num_steps", "rate"]) == " Did you mean 'num_steps'?"
    assert suggest("zzz", ["num_steps", "rate"]) == ""


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", registry.STUDIES)
def test_every_study_has_settings(name, scale):
    study = registry.find_study(name)
    configuration = read_configuration(study, scale)
    assert study.name == name
    assert configuration.scale == scale
    assert isinstance(configuration.settings, study.settings)
