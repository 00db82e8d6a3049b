"""Ax makes, fits, validates and stores models of sparse GPs."""

import math

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood
from tests.support.model_laws import uniform
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, SupportError, UnsupportedError
from streamgp.likelihoods import Poisson
from streamgp.testing.tolerances import judgement, tolerance

pytest.importorskip("ax", reason="needs the extra streamgp[ax]")

from ax.adapter.cross_validation import cross_validate  # after the check for the extra
from ax.adapter.registry import Generators, MBM_X_trans
from ax.adapter.transforms.derelativize import Derelativize
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.search_space import SearchSpaceDigest
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from ax.generators.torch.botorch_modular.surrogate import ModelConfig, Surrogate, SurrogateSpec
from ax.generators.torch.botorch_modular.utils import fit_botorch_model
from botorch.utils.datasets import SupervisedDataset

from streamgp.integrations.ax import AxOnlineGP

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ax, by the hundred
BOUNDS = torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)


def branin(x1, x2):
    bowl = (x2 - 5.1 / (4 * math.pi**2) * x1**2 + 5 / math.pi * x1 - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x1) + 10


def smooth(rng, num_points=20):
    X = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * uniform(rng, num_points, 2)
    return X, (X[:, :1] / 5).sin() + (X[:, 1:] / 7).cos() + 3.0


def fitted(X, Y, **options):
    model = AxOnlineGP(X, Y, **options)
    fit_botorch_model(model, mll_class=ExactMarginalLogLikelihood)
    return model


def digest():
    return SearchSpaceDigest(feature_names=["x1", "x2"], bounds=[(-5.0, 10.0), (0.0, 15.0)])


def dataset(X, Y, name="branin", Yvar=None):
    return SupervisedDataset(X=X, Y=Y, Yvar=Yvar, feature_names=["x1", "x2"], outcome_names=[name])


def surrogate_of(*, model_options=None, **config):
    config = ModelConfig(botorch_model_class=AxOnlineGP, model_options=model_options or {}, **config)
    return Surrogate(surrogate_spec=SurrogateSpec(model_configs=[config]))


def strategy(*, num_initial, **generator):
    config = ModelConfig(botorch_model_class=AxOnlineGP, model_options=generator.pop("model_options", {}))
    kwargs = {"surrogate_spec": SurrogateSpec(model_configs=[config]), **generator}
    sobol = GenerationNode(
        name="Sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 0})],
        transition_criteria=[MinTrials(threshold=num_initial, transition_to="streamgp")],
    )
    model = GenerationNode(
        name="streamgp", generator_specs=[GeneratorSpec(Generators.BOTORCH_MODULAR, generator_kwargs=kwargs)]
    )
    return GenerationStrategy(name="Sobol+streamgp", nodes=[sobol, model])


def client_for(parameters, objective, generation, **optimization):
    client = Client(random_seed=0)
    client.configure_experiment(parameters=parameters, name="test")
    client.configure_optimization(objective=objective, **optimization)
    client.set_generation_strategy(generation)
    return client


FLOATS = [
    RangeParameterConfig(name="x1", parameter_type="float", bounds=(-5.0, 10.0)),
    RangeParameterConfig(name="x2", parameter_type="float", bounds=(0.0, 15.0)),
]


def play(client, num_trials, function):
    for _ in range(num_trials):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            client.complete_trial(index, raw_data=function(**parameters))


@pytest.mark.slow
@pytest.mark.thorough
def test_a_client_minimizes_branin_and_continues_from_a_file(tmp_path):
    client = client_for(FLOATS, "-branin", strategy(num_initial=6))
    play(client, 12, lambda **x: {"branin": branin(**x)})
    parameters, _, _, _ = client.get_best_parameterization()
    assert branin(**parameters) < 5.0
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    assert len(again.get_next_trials(max_trials=1)) == 1


@pytest.mark.slow
def test_a_client_handles_integers_categories_and_an_outcome_constraint():
    parameters = [
        FLOATS[0],
        RangeParameterConfig(name="n", parameter_type="int", bounds=(0, 10)),
        ChoiceParameterConfig(name="kind", parameter_type="str", values=["a", "b", "c"], is_ordered=False),
    ]
    generation = strategy(num_initial=5)
    client = client_for(parameters, "-cost", generation, outcome_constraints=["size <= 8"])
    play(client, 6, lambda x1, n, kind: {"cost": (x1 - 1) ** 2 + n + (kind != "b"), "size": float(10 - n)})
    models = generation.adapter.generator.surrogate.model.models
    assert [type(model) for model in models] == [AxOnlineGP] * 2


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["poisson", Poisson()], ids=["by name", "by object"])
def test_counts_are_modeled_as_counts_where_ax_does_not_standardize_them(tmp_path, likelihood):
    generator = {"model_options": {"likelihood": likelihood}, "transforms": [*MBM_X_trans, Derelativize]}
    generation = strategy(num_initial=6, **generator)
    client = client_for(FLOATS, "events", generation)
    play(client, 7, lambda x1, x2: {"events": (float(round(math.exp(2.0 - 0.1 * (x1 - 2) ** 2))), 0.0 * x2 + math.nan)})
    model = generation.adapter.generator.surrogate.model
    assert isinstance(model.model.likelihoods[0], Poisson)
    if isinstance(likelihood, str):
        path = str(tmp_path / "client.json")
        client.save_to_json_file(path)
        assert len(Client.load_from_json_file(path).get_next_trials(max_trials=1)) == 1


@pytest.mark.parametrize("has_noise", [False, True], ids=["learned noise", "known noise"])
def test_predictions_are_those_of_an_exact_gp_fitted_to_the_same_data(rng, has_noise):
    X, Y = smooth(rng)
    Yvar = torch.full_like(Y, 1e-4) if has_noise else None
    surrogate = surrogate_of()
    surrogate.fit([dataset(X, Y, Yvar=Yvar)], digest())
    exact = SingleTaskGP(X, Y, Yvar, input_transform=Normalize(2, bounds=BOUNDS), outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(exact.likelihood, exact))
    W, truth = smooth(rng, 50)
    mean, _ = surrogate.predict(W)
    # Kernels and priors differ, so that what is compared is how far both are from the truth.
    error, other = ((one - truth).square().mean().sqrt() for one in (mean, exact.posterior(W).mean))
    assert error < 0.1
    assert error < 3 * other + 0.02


def test_ax_s_transforms_are_fitted_and_undone(rng):
    X, Y = smooth(rng)
    surrogate = surrogate_of(outcome_transform_classes=[Standardize])
    surrogate.fit([dataset(X, 1000 * Y)], digest())
    into = surrogate.model.model.input_transform
    assert_close(into(BOUNDS), torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64))
    mean, covariance = surrogate.predict(X)
    assert (mean - 1000 * Y).abs().max() < 50
    assert covariance.shape == (20, 1, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("has_noise", [False, True], ids=["learned noise", "known noise"])
def test_a_state_loaded_with_the_same_data_predicts_the_same(rng, has_noise, dtype):
    X, Y = (one.to(dtype) for one in smooth(rng))
    # Noise that differs between observations, so that a mean of it would be noticed.
    Yvar = torch.linspace(1e-3, 1e-1, 20, dtype=dtype).unsqueeze(-1) if has_noise else None
    options = {"train_Yvar": Yvar, "num_inducing": 10}
    transforms = {"input_transform": Normalize(2, bounds=BOUNDS.to(dtype)), "outcome_transform": Standardize(1)}
    model = fitted(X, Y, **options, **transforms)
    other = AxOnlineGP(X, Y, **options, **transforms)
    other.load_state_dict(model.state_dict())
    W = smooth(rng, 15)[0].to(dtype)
    one, two = model.posterior(W), other.posterior(W)
    assert_close(two.mean, one.mean, **tolerance(dtype))
    assert_close(two.variance, one.variance, **tolerance(dtype))


def test_a_state_loaded_with_other_data_keeps_hyperparameters_and_learns_the_data(rng):
    X, Y = smooth(rng)
    model = fitted(X, Y)
    other = AxOnlineGP(X[5:], Y[5:])
    other.load_state_dict(model.state_dict())
    before, after = model.model.gps[0], other.model.gps[0]
    for one, two in zip(before.kernel.parameters(), after.kernel.parameters(), strict=True):
        assert torch.equal(one, two)
    assert torch.equal(before.inducing_points, after.inducing_points)
    assert other.posterior(X[:5]).variance.sum() > model.posterior(X[:5]).variance.sum()
    other.fit()  # warm, from the loaded hyperparameters
    assert (other.posterior(X).mean - Y).abs().max() < 0.2


@pytest.mark.slow
def test_cross_validation_predicts_what_was_left_out():
    generation = strategy(num_initial=12)
    client = client_for(FLOATS, "-bowl", generation)
    play(client, 13, lambda x1, x2: {"bowl": (x1 - 2) ** 2 + 0.5 * (x2 - 7) ** 2})
    results = cross_validate(generation.adapter)
    errors = [abs(one.observed.data.means[0] - one.predicted.means[0]) for one in results]
    spread = [abs(one.observed.data.means[0] - 30.0) for one in results]
    assert sum(errors) < 0.5 * sum(spread)


def test_it_can_be_conditioned_and_fantasized_as_the_model_behind_it(rng):
    X, Y = smooth(rng)
    model = fitted(X, Y)
    conditioned = model.condition_on_observations(X[:2], Y[:2] + 1.0)
    assert isinstance(conditioned, sg.OnlineGP)
    fantasies = model.fantasize(X[:3], SobolQMCNormalSampler(torch.Size([4]), seed=0))
    assert fantasies.batch_shape == (4,)
    assert model.subset_output([0]).num_outputs == model.num_outputs == 1
    assert_close(model(X).mean, model.posterior(X).mean.squeeze(-1))
    assert torch.equal(model.transform_inputs(X), X)


def test_standard_errors_of_zero_are_outcomes_without_noise(rng):
    X, Y = smooth(rng)
    model = fitted(X, Y, train_Yvar=torch.zeros_like(Y))
    assert_close(model.posterior(X).mean, Y, **judgement(absolute=0.02))
    constant = fitted(X[:3], torch.ones_like(Y[:3]), train_Yvar=torch.tensor([[0.0], [0.1], [0.0]], dtype=Y.dtype))
    assert constant.posterior(X[:3]).variance.isfinite().all()


def test_counts_that_were_standardized_are_refused_with_what_to_do(rng):
    X, Y = smooth(rng)
    with pytest.raises(SupportError, match=r"whole numbers.*Ax standardizes outcomes.*MBM_X_trans, Derelativize"):
        fitted(X, Y, likelihood="poisson")


def test_it_says_when_it_was_not_fitted(rng):
    model = AxOnlineGP(*smooth(rng))
    with pytest.raises(OptionError, match="holds data but was not fitted"):
        model.posterior(BOUNDS)


def test_wrong_arguments_are_refused(rng):
    X, Y = smooth(rng)
    with pytest.raises(ShapeError, match="train_X must have shape"):
        AxOnlineGP(X, Y.squeeze(-1))
    with pytest.raises(OptionError, match=r"likelihood must be one of .*'gaussian'"):
        AxOnlineGP(X, Y, likelihood="cauchy")
    with pytest.raises(UnsupportedError, match=r"takes numbers, but Ax passes columns \[1\] as categories"):
        AxOnlineGP.construct_inputs(dataset(X, Y), categorical_features=[1])
    with pytest.raises(UnsupportedError, match=r"takes numbers, but Ax passes columns \[0\] as fidelities"):
        AxOnlineGP.construct_inputs(dataset(X, Y), fidelity_features=[0])
    with pytest.raises(UnsupportedError, match=r"mll_options \['beta'\] were given"):
        fit_botorch_model(AxOnlineGP(X, Y), mll_class=ExactMarginalLogLikelihood, mll_options={"beta": 1.0})
