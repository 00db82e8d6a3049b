"""A study's file makes an optimizer, or a sentence that says which part of it does not."""

import pytest

from streamgp.cli.optimize.study_file import EXAMPLE, read_study
from streamgp.errors import FileFormatError
from streamgp.likelihoods import Binomial, Gaussian
from streamgp.loops import Categorical, Integer, Ordinal, Real


def settings_of(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text)
    return read_study(path).to_parts()["settings"]


def test_the_example_has_every_kind_of_parameter(tmp_path):
    settings = settings_of(tmp_path, EXAMPLE)
    assert settings.space.parameters == {
        "temperature": Real(100, 180, step=5),
        "loading": Real(1e-4, 1.0, log=True),
        "stirrers": Integer(1, 4),
        "flask": Ordinal([50, 100, 250]),
        "solvent": Categorical(["water", "ethanol"]),
    }
    assert settings.names == ("yield",)


def test_mixtures_outcomes_and_settings_are_read(tmp_path):
    settings = settings_of(
        tmp_path,
        """
        parameters.a = {type = "real", low = 0, high = 1}
        parameters.b = {type = "real", low = 0, high = 1}
        linear_constraints = [{weights = {a = 1, b = 1}, lower = 1, upper = 1}]
        objectives.strength = {noise = 0.5}
        objectives.cost = {maximize = false, likelihood = "poisson"}
        constraints.sound = {lower = 5, likelihood = "binomial", trials = 10}
        settings = {seed = 3, num_initial = 5}
        """,
    )
    assert settings.space.constraints[0].weights == {"a": 1, "b": 1}
    assert (settings.space.constraints[0].lower, settings.space.constraints[0].upper) == (1.0, 1.0)
    assert [one.maximize for one in settings.objectives] == [True, False]
    strength, cost, sound = (one.likelihood for one in settings.outcomes)
    assert isinstance(strength, Gaussian)
    assert float(strength.noise_variance) == 0.25
    assert type(cost).__name__ == "Poisson"
    assert isinstance(sound, Binomial)
    assert (settings.seed, settings.num_initial) == (3, 5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type = "real"', 'type = "reel"', r"\[parameters.temperature\]: type must be one of 'real', .* is 'reel'"),
        ("high = 180", "hihg = 180", r"'hihg' is not known. Did you mean 'high'\?"),
        ("high = 180", "", "'high' is missing"),
        ("high = 180", "high = 80", "must be below the greatest"),
        ("high = 180", 'high = "a lot"', "high must be a number, but is 'a lot'"),
        ("log = true", "log = 1", "log must be true or false"),
        ("values = [", 'values = "water" # [', "values must be a list"),
        ('"-OH"', "", "Categorical needs at least two values"),
        ("[objectives.yield]", "[objectives.solvent]", "'solvent' is the name of several"),
        ("[objectives.yield]", "[targets.yield]", "'targets' is not known"),
        ("maximize = true", 'maximize = "yes"', r"\[objectives.yield\]: maximize must be true or false"),
        ("maximize = true", 'likelihood = "poison"', "likelihood must be one of"),
        ("maximize = true", 'likelihood = "preference"', "must be the name of one with outcomes"),
        ("maximize = true", 'likelihood = "binomial"', "needs its number of trials"),
        ("maximize = true", "noise = -1", "noise must be a positive standard deviation"),
        ("maximize = true", 'noise = 1\nlikelihood = "poisson"', "noise is the standard deviation of gaussian"),
        ("[settings]", "[constraints.heat]\n[settings]", r"\[constraints.heat\]: A Constraint must have"),
        ("[settings]", "linear_constraints = 3\n[settings]", r"'linear_constraints' is not known"),
        ('acquisition = "thompson"', 'acquisition = "best"', "acquisition must be one of"),
        ("num_initial = 4", "num_initial = 0", r"\[settings\]: num_initial must be a whole number"),
        ("num_initial = 4", "num_initial = ", "is not TOML"),
        ('"-OH"', '["-OH", "x"]', r"\[parameters.solvent\]: values must be numbers, or texts"),
        ('"-OH"', '"-OH", " "', r"\[parameters.solvent\]: .* but one is ' '"),
        ('"-OH"', '"1", 1', "values must look different in a table, but 1 comes more than once"),
        ("[objectives.yield]", '[objectives.""]', "One of the objectives has no name"),
    ],
)
def test_mistakes_are_named_with_their_place(study, old, new, message):
    study.write_text(study.read_text().replace(old, new, 1))
    with pytest.raises(FileFormatError, match=message):
        read_study(study)


def test_a_file_that_is_not_there_can_be_begun(tmp_path):
    with pytest.raises(FileFormatError, match=r"cannot be read .* `streamgp optimize init"):
        read_study(tmp_path / "none.toml")


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "[" * 5000 + "]" * 5000])
def test_a_file_of_brackets_is_refused(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"nested|TOML"):
        read_study(path)
