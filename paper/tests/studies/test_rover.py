"""The loop on rover: what it reports, and what the names of methods stand for."""

import json
from dataclasses import replace

import pytest

from paper.schema.configuration import read_configuration
from paper.studies.rover import STUDY, RoverSettings, model_options
from streamgp.acquisition import LookaheadThompson, Thompson

TINY = RoverSettings(
    num_initial=8,
    batch_size=3,
    num_evaluations=14,
    num_inducing_large=6,
    num_inducing_small=4,
    num_candidates=20,
    depth=2,
    num_paths=2,
)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact-lts", "svgp-small-pll-ts", "svgp-large-elbo-lts-depth1"])
def test_a_run_reports_rewards_and_times_of_all_steps(method):
    outcome = STUDY.run("rover", method, 0, TINY)
    assert outcome["num_evaluations"] == [8, 11, 14]
    assert outcome["best"] == sorted(outcome["best"])
    assert -60.0 < outcome["best"][0] <= outcome["best"][-1] < 4.936
    assert len(outcome["seconds"]) == 2
    assert min(outcome["seconds"]) > 0.0
    json.dumps(outcome, allow_nan=False)


def test_methods_of_a_seed_share_the_initial_design():
    only_design = replace(TINY, num_evaluations=8)
    first, second = (STUDY.run("rover", method, 5, only_design) for method in ("exact-ts", "svgp-large-elbo-ts"))
    assert first["best"] == second["best"]


def test_names_say_model_loss_acquisition_and_depth():
    lookahead = LookaheadThompson(TINY.num_candidates, depth=2, num_paths=2)
    assert model_options("exact-lts", TINY) == {"model": "exact", "acquisition": lookahead}
    plain = Thompson(TINY.num_candidates)
    sparse = {"model": "sparse", "num_inducing": 4, "objective": "pll", "acquisition": plain}
    assert model_options("svgp-small-pll-ts", TINY) == sparse
    deep = {"model": "sparse", "num_inducing": 6, "objective": "elbo", "acquisition": replace(lookahead, depth=8)}
    assert model_options("svgp-large-elbo-lts-depth8", TINY) == deep


@pytest.mark.parametrize("method", STUDY.methods)
def test_all_methods_have_options_that_the_optimizer_knows(method):
    options = model_options(method, TINY)
    assert options["model"] in ("exact", "sparse")
    assert isinstance(options["acquisition"], Thompson | LookaheadThompson)
    assert options.get("objective", "elbo") in ("elbo", "pll")


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_settings_can_be_read(scale):
    assert read_configuration(STUDY, scale).num_trials >= 5
