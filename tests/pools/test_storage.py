import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.priors import GammaPrior

import streamgp as sg
from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.gp.archive import write_archive
from streamgp.likelihoods import Binomial


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["integrated_variance", "random"])
def test_proposals_go_on_as_they_would_have(country, tmp_path, acquisition):
    learner = country.survey(
        acquisition=acquisition,
        likelihood=Binomial(torch.full((40,), 30)),
        threshold=0.3,
        refit=3,
        targets=range(30),
        weights=torch.linspace(0.1, 1.0, 40),
    )
    first = learner.ask(6)
    learner.tell(first, country.counts[first])
    learner.ask(1)
    learner.save(tmp_path / "learner.zip")
    loaded = sg.PoolLearner.load(tmp_path / "learner.zip")
    assert repr(loaded) == repr(learner)
    for q in (2, 2):
        one, other = learner.ask(q), loaded.ask(q)
        assert torch.equal(one, other)
        learner.tell(one, country.counts[one])
        loaded.tell(one, country.counts[one])
    assert torch.equal(loaded.predict().mean, learner.predict().mean)


def test_a_learner_can_be_saved_before_any_data(country, tmp_path):
    learner = sg.PoolLearner(country.X, seed=5)
    learner.save(tmp_path / "new.zip")
    assert torch.equal(sg.PoolLearner.load(tmp_path / "new.zip").ask(4), learner.ask(4))


def test_kernels_with_priors_are_passed_in_again(country, tmp_path):
    kernel = ScaleKernel(MaternKernel(1.5, lengthscale_prior=GammaPrior(3.0, 6.0))).double()
    learner = country.survey(kernel=kernel)
    learner.save(tmp_path / "learner.zip")
    with pytest.raises(UnsupportedError, match="has priors of its own"):
        sg.PoolLearner.load(tmp_path / "learner.zip")
    loaded = sg.PoolLearner.load(tmp_path / "learner.zip", kernel=kernel)
    assert torch.equal(loaded.ask(3), learner.ask(3))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="There is no file"):
        sg.PoolLearner.load(tmp_path / "nothing.zip")
    write_archive(tmp_path / "other.zip", {"format": "streamgp.Optimizer", "version": 1}, {})
    with pytest.raises(FileFormatError, match=r"does not hold a streamgp\.PoolLearner"):
        sg.PoolLearner.load(tmp_path / "other.zip")
    write_archive(tmp_path / "part.zip", {"format": "streamgp.PoolLearner", "version": 1, "settings": {}}, {})
    with pytest.raises(FileFormatError, match="lacks a part of a pool learner"):
        sg.PoolLearner.load(tmp_path / "part.zip")
