"""A model for Ax: sparse GPs of any likelihood in its modular BoTorch generator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final, no_type_check

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.transformed import TransformedPosterior
from botorch.sampling.base import MCSampler
from botorch.utils.datasets import SupervisedDataset
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import OptionError, SupportError, UnsupportedError
from streamgp.gp import SparseProcess
from streamgp.integrations.extras import missing_package
from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops.outcomes import Outcome
from streamgp.models import OnlineGP
from streamgp.models.arguments import read_likelihoods
from streamgp.models.fitting import check_training_data

try:
    from ax.generators.torch.botorch_modular.utils import fit_botorch_model
    from ax.storage.botorch_modular_registry import register_model
except ModuleNotFoundError as error:
    raise missing_package(error, "ax") from error

__all__ = ["AxOnlineGP"]

# Noise of evaluations that are said to have none, relative to the variance of the outcomes.
_NO_NOISE = 1e-6


@final
@dataclass(frozen=True, eq=False)
class _AxData:
    """Data that Ax gives to a model, and how to read it."""

    inputs: Tensor
    outcomes: Tensor
    noise_variance: Tensor | None
    likelihood: AbstractLikelihood | None
    kernel: Kernel | None
    num_inducing: int | str
    input_transform: InputTransform | None
    outcome_transform: OutcomeTransform | None

    def fit(self, start: OnlineGP | None) -> OnlineGP:
        """Learn hyperparameters, inducing points and belief."""
        try:
            return OnlineGP.fit(
                self.inputs,
                self.outcomes,
                likelihood=self.likelihood,
                train_Yvar=self.noise_variance,
                num_inducing=self.num_inducing,
                input_transform=self.input_transform,
                outcome_transform=self.outcome_transform,
                start=start,
                kernel=self.kernel if start is None else None,
            )
        except SupportError as error:
            raise SupportError(
                f"{error} Ax standardizes outcomes unless it is told not to: add 'transforms': [*MBM_X_trans, "
                "Derelativize], of ax.adapter, to generator_kwargs."
            ) from error

    def believe(self, fitted: OnlineGP) -> OnlineGP:
        """Learn the belief alone, with the hyperparameters, inducing points and transforms of an earlier fit."""
        priors = [_prior(gp) for gp in fitted.gps if isinstance(gp, SparseGP)]
        transform = fitted._modules.get("outcome_transform")
        prior = OnlineGP(
            priors,
            fitted.likelihoods,
            input_transform=fitted._modules.get("input_transform"),
            outcome_transform=transform,
        )
        noise = self.noise_variance
        if noise is not None and transform is not None:
            _, noise = transform(self.outcomes, noise, X=fitted.transform_inputs(self.inputs))
        return prior.absorb(self.inputs, self.outcomes, noise, inducing="keep")


@final
class AxOnlineGP(GPyTorchModel, FantasizeMixin):
    """An `OnlineGP` that is made and fitted the way Ax does it.

    Ax makes the model of data, and then either fits it or loads the state of an earlier fit, as in cross-validation.
    Fitting is registered with Ax's `fit_botorch_model`, and the class with Ax's storage, so that
    `ModelConfig(botorch_model_class=AxOnlineGP)` is all that is needed. Ax makes one model for each metric.

    Attributes:
        task: Data, and how to read it.
        fitted: The model behind it, a frozen value; None before it is fitted.
    """

    task: _AxData
    fitted: OnlineGP | None
    _supports_batched_models = False  # Ax's question whether one model may take all metrics

    # Ax reads the names of arguments that are not keyword-only, which a decorator that enforces types would hide.
    @no_type_check
    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        train_Yvar: Tensor | None = None,
        likelihood: AbstractLikelihood | str | None = None,
        covar_module: Kernel | None = None,
        num_inducing: int | str = 100,
        input_transform: InputTransform | None = None,
        outcome_transform: OutcomeTransform | None = None,
    ) -> None:
        """Keep the data until Ax fits the model.

        Args:
            train_X: Inputs `(n, d)`.
            train_Y: Outcomes `(n, o)`.
            train_Yvar: Known noise variances `(n, o)`, as the squares of Ax's standard errors; of zero for evaluations
                without noise; learned if None.
            likelihood: One of `streamgp.likelihoods`, or a name as in `streamgp.Optimizer`, which Ax can also load from
                a file; Gaussian by default.
            covar_module: Kernel; that of `streamgp.fit` by default.
            num_inducing: Number of inducing points, or `"auto"`.
            input_transform: As Ax makes it; fitted with the model.
            outcome_transform: Likewise.
        """
        super().__init__()
        check_training_data(train_X, train_Y)
        if isinstance(likelihood, str):
            likelihood = Outcome.read(likelihood).likelihood
        read_likelihoods(likelihood, train_Y.shape[-1])
        task = _AxData(
            inputs=train_X,
            outcomes=train_Y,
            noise_variance=None if train_Yvar is None else _positive(train_Yvar, train_Y),
            likelihood=likelihood,
            kernel=covar_module,
            num_inducing=num_inducing,
            input_transform=input_transform,
            outcome_transform=outcome_transform,
        )
        # Past torch, which would take the fitted model for a part with a state of its own.
        self.__dict__.update(task=task, fitted=None)

    @classmethod
    def construct_inputs(
        cls,
        training_data: SupervisedDataset,
        *,
        likelihood: AbstractLikelihood | str | None = None,
        num_inducing: int | str = 100,
        categorical_features: Sequence[int] = (),
        fidelity_features: Sequence[int] = (),
    ) -> dict[str, Any]:
        """Arguments for the constructor, from Ax's data set and `ModelConfig(model_options=...)`.

        Args:
            training_data: Data of one metric.
            likelihood: As in the constructor.
            num_inducing: As in the constructor.
            categorical_features: Columns that Ax did not encode; not supported.
            fidelity_features: Columns that are fidelities; not supported.
        """
        for what, columns in (("categories", categorical_features), ("fidelities", fidelity_features)):
            if columns:
                raise UnsupportedError(
                    f"AxOnlineGP takes numbers, but Ax passes columns {list(columns)} as {what}. "
                    "Keep Ax's OneHot among the transforms for categories; for fidelities use another model class."
                )
        data: dict[str, Any] = super().construct_inputs(training_data)
        return {**data, "likelihood": likelihood, "num_inducing": num_inducing}

    def fit(self) -> None:
        """Fit to the data, from the hyperparameters of the state that was loaded, if any."""
        self.__dict__["fitted"] = self.task.fit(self.fitted)

    @property
    def model(self) -> OnlineGP:
        """The fitted model."""
        if self.fitted is None:
            raise OptionError(
                "This AxOnlineGP holds data but was not fitted. Ax does so itself; elsewhere call model.fit(), or "
                "use streamgp.OnlineGP.fit."
            )
        return self.fitted

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return self.task.outcomes.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes: none."""
        return torch.Size()

    @property
    def likelihood(self) -> torch.nn.Module:
        """Likelihood of outcomes, for BoTorch."""
        return self.model.likelihood

    def posterior(  # type: ignore[override] # as OnlineGP
        self,
        X: Tensor,
        output_indices: Sequence[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | Callable[..., Any] | None = None,
    ) -> GPyTorchPosterior | TransformedPosterior:
        """Predict, as `OnlineGP.posterior` does."""
        return self.model.posterior(X, output_indices, observation_noise, posterior_transform)

    def forward(self, X: Tensor) -> MultivariateNormal:
        """The distribution of the posterior."""
        return self.model(X)

    def condition_on_observations(  # type: ignore[override] # as OnlineGP
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, *, propagate_grads: bool = True
    ) -> OnlineGP:
        """Condition, as `OnlineGP.condition_on_observations` does."""
        return self.model.condition_on_observations(X, Y, noise, propagate_grads=propagate_grads)

    def fantasize(  # type: ignore[override] # as OnlineGP
        self,
        X: Tensor,
        sampler: MCSampler,
        observation_noise: Tensor | None = None,
        *,
        evaluation_mask: Tensor | None = None,
        propagate_grads: bool = True,
    ) -> OnlineGP:
        """Condition on draws, as `OnlineGP.fantasize` does."""
        return self.model.fantasize(
            X, sampler, observation_noise, evaluation_mask=evaluation_mask, propagate_grads=propagate_grads
        )

    def subset_output(self, idcs: Sequence[int]) -> OnlineGP:
        """The model of some of the outputs."""
        return self.model.subset_output(idcs)

    def transform_inputs(self, X: Tensor, input_transform: torch.nn.Module | None = None) -> Tensor:
        """Apply the input transform, or the given one."""
        return self.model.transform_inputs(X, input_transform)

    def get_extra_state(self) -> OnlineGP | None:
        """The fitted model, which is all the state there is."""
        return self.fitted

    def set_extra_state(self, state: OnlineGP | None) -> None:
        """Take over hyperparameters, and learn the belief from the data at hand."""
        self.__dict__["fitted"] = None if state is None else self.task.believe(state)

    def load_state_dict(  # type: ignore[override] # as GPyTorchModel has it
        self, state_dict: Mapping[str, Any], strict: bool = True, keep_transforms: bool = True, assign: bool = False
    ) -> None:
        """Load the state of a model of other data."""
        torch.nn.Module.load_state_dict(self, state_dict, strict=strict, assign=assign)


@fit_botorch_model.register(AxOnlineGP)  # type: ignore[untyped-decorator]
def _fit(model: AxOnlineGP, mll_class: object, mll_options: Mapping[str, Any] | None = None) -> None:
    """Fit by the model's own objective; Ax's marginal likelihood does not apply."""
    if mll_options:
        raise UnsupportedError(
            f"AxOnlineGP is fitted by its own objective, but mll_options {sorted(mll_options)} were given. "
            "Leave them out of ModelConfig."
        )
    model.fit()


def _positive(noise_variance: Tensor, outcomes: Tensor) -> Tensor:
    """Noise variances, with the least of noise where Ax was told that there is none."""
    scale = outcomes.var(0, correction=0)
    least = _NO_NOISE * torch.where(scale > 0, scale, torch.ones_like(scale))
    return torch.where(noise_variance == 0, least, noise_variance)


def _prior(gp: SparseGP) -> SparseGP:
    """The GP before any data, with the same hyperparameters and inducing points."""
    process = gp.sparse_process
    return SparseGP(SparseProcess.from_prior(process.prior, process.inducing_points, jitter=process.jitter))


register_model(AxOnlineGP)
