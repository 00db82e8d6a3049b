"""A BoTorch model that is a frozen value: what BoTorch and PyTorch ask of any model, answered once."""

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.transformed import TransformedPosterior
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from streamgp.checks import ArrayLike, check_choice, check_inputs, to_tensor
from streamgp.conditioning import AbsorbInfo
from streamgp.errors import ShapeError, UnsupportedError
from streamgp.gp import Prediction
from streamgp.likelihoods import AbstractLikelihood
from streamgp.models.arguments import GP, aligned, noise_column, read_indices
from streamgp.models.observation_model import ObservationModel, expected_noise_variance
from streamgp.models.output import Output, Term
from streamgp.models.posterior import LatentPosterior, describe_model, model_table, response_posterior
from streamgp.models.saving import DESCRIPTION, STATE, load_state, model_state
from streamgp.models.transforms import affine_map
from streamgp.shapes import broadcast_shapes

__all__ = ["SCALES", "AbstractFrozenModel"]

SCALES = ("latent", "response")
# The class of the model at hand.
Own = TypeVar("Own", bound="AbstractFrozenModel")


class AbstractFrozenModel(GPyTorchModel, FantasizeMixin, ABC):  # type: ignore[misc] # BoTorch's two differ in a method
    """Independent outputs behind transforms that do not change, with a complete `state_dict`.

    Attributes:
        gps: One GP for each output, in the units of the transforms.
        likelihoods: One for each output; None where only the latent function is of interest.
        scale: Whether `posterior` is that of the latent functions, or of the responses.
        absorb_info: Diagnostics of the last `absorb`, one for each output; None before.
        fit_info: Diagnostics of the fit of each output; None where the model was made from GPs.
    """

    gps: tuple[GP, ...]
    likelihoods: tuple[AbstractLikelihood | None, ...]
    scale: str
    absorb_info: tuple[AbsorbInfo, ...] | None
    fit_info: tuple[Any, ...] | None
    input_transform: Any  # present only where there is one, as in BoTorch
    outcome_transform: Any

    def __getattr__(self, name: str) -> Any:
        if name in ("train_inputs", "train_targets"):
            raise AttributeError(
                f"{type(self).__name__} keeps a belief and no {name}, so functions of BoTorch that condition on "
                "training data again, such as qPredictiveEntropySearch, cannot use it, and fit_gpytorch_mll nothing "
                f"to fit. Use {type(self).__name__}.fit(X, Y), and qJointEntropySearch or qMaxValueEntropy."
            )
        return super().__getattr__(name)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.gps)

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes of the model; those of fantasies come first."""
        return broadcast_shapes(*(gp.process.batch_shape for gp in self.gps))

    def posterior(  # type: ignore[override] # BoTorch's own models differ in it
        self,
        X: ArrayLike,
        output_indices: Sequence[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | Callable[..., Any] | None = None,
    ) -> GPyTorchPosterior | TransformedPosterior:
        r"""Predict at inputs; nothing is computed before it is read.

        Args:
            X: Inputs `(*b, q, d)`.
            output_indices: Outputs to predict; all by default.
            observation_noise: Whether to add the noise of observations to the latent functions: for likelihoods that
                are not Gaussian, noise $W^{-1}$ from the expected curvature, with which fantasies are made; on the
                response scale, outcomes are predicted instead. A tensor `(*b, 1 or q, o)` gives the variances, in the
                units of the outcome transform.
            posterior_transform: Applied last.

        Returns:
            A `LatentPosterior`, or BoTorch's `TransformedPosterior` on the response scale or behind a transform of
            outcomes that is not linear.
        """
        indices = read_indices(output_indices, self.num_outputs)
        inputs = self._read_inputs(X)
        outputs = []
        for j in indices:
            prediction = Prediction(self.gps[j].process, inputs)
            shape = broadcast_shapes(self.gps[j].process.batch_shape, inputs.shape[:-2])
            noise = self._noise(j, prediction, observation_noise, indices=indices)
            outputs.append(Output((Term(prediction, noise),), torch.Size((*shape, inputs.shape[-2]))))
        posterior = self._untransformed(aligned(outputs), inputs, indices)
        if self.scale == "response":
            likelihoods = tuple(self.likelihoods[j] for j in indices)
            posterior = response_posterior(posterior, likelihoods, is_observed=observation_noise is not False)
        if posterior_transform is None:
            return posterior
        if type(posterior_transform) is ScalarizedPosteriorTransform and isinstance(posterior, LatentPosterior):
            weights: Any = posterior_transform.weights
            return posterior.scalarized(weights.to(inputs), posterior_transform.offset)
        return posterior_transform(posterior=posterior, X=X)

    def forward(self, X: Tensor) -> MultivariateNormal:
        """The distribution of the posterior, in the user's units, which some acquisition functions ask for."""
        posterior: Any = self.posterior(X)
        return posterior.distribution

    @property
    def _supports_cache_root(self) -> bool:
        """BoTorch's question whether posteriors are Gaussian, so that noisy improvement may cache a root of them."""
        return self.scale == "latent"

    def subset_output(self: Own, idcs: Sequence[int]) -> Own:
        """The model of some of the outputs."""
        indices = read_indices(idcs, self.num_outputs)
        subset = self._with([self.gps[j] for j in indices])
        subset.likelihoods = tuple(self.likelihoods[j] for j in indices)
        subset.likelihood = ObservationModel(subset.likelihoods)
        if "outcome_transform" in self._modules:
            subset.outcome_transform = self.outcome_transform.subset_output(indices).eval()
        return subset

    def on_scale(self: Own, scale: str) -> Own:
        """Return the model with posteriors on the `"latent"` or the `"response"` scale."""
        other = self._with(self.gps)
        other.scale = check_choice(scale, SCALES, "scale")
        return other

    def transform_inputs(self, X: Tensor, input_transform: torch.nn.Module | None = None) -> Tensor:
        """Apply the input transform, or the given one."""
        if input_transform is not None:
            return input_transform.to(X)(X)
        return self.input_transform(X) if "input_transform" in self._modules else X

    def train(self: Own, mode: bool = True) -> Own:
        """Do nothing: the model and its transforms are frozen."""
        return self

    def eval(self: Own) -> Own:
        """Do nothing: the model and its transforms are frozen."""
        return self

    def load_state_dict(  # type: ignore[override] # as GPyTorchModel has it
        self, state_dict: Mapping[str, Any], strict: bool = True, keep_transforms: bool = True, assign: bool = False
    ) -> None:
        """Take over the GPs, likelihoods and transforms of a model with as many outputs and the same transforms.

        The state is complete: the model then predicts as the other does, whatever it was fitted to.
        """
        torch.nn.Module.load_state_dict(self, state_dict, strict=strict, assign=assign)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination.update({f"{prefix}{name}": value for name, value in model_state(self).items()})

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        start = f"{prefix}{STATE}."
        own = {name.removeprefix(prefix): value for name, value in state_dict.items() if name.startswith(start)}
        others = {name: value for name, value in state_dict.items() if not name.startswith(start)}
        super()._load_from_state_dict(others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        if DESCRIPTION not in own:
            missing_keys.append(f"{prefix}{DESCRIPTION}")
        else:
            self.gps, self.likelihoods = load_state(self, own)
            self.likelihood = ObservationModel(self.likelihoods)

    def _apply(self: Own, fn: Any, recurse: bool = True) -> Own:
        reference = self._reference
        moved = fn(reference)
        if moved.dtype != reference.dtype or moved.device != reference.device:
            raise UnsupportedError(
                f"An OnlineGP is a frozen value and cannot be moved: it is {reference.dtype} on {reference.device}, "
                f"and {moved.dtype} on {moved.device} was asked for. Fit it to data of that type and place."
            )
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    @property
    def _reference(self) -> Tensor:
        return self.gps[0].process.reference

    def _with(self: Own, gps: Sequence[GP]) -> Own:
        """The model with other GPs, sharing the frozen transforms."""
        other = type(self).__new__(type(self))
        torch.nn.Module.__init__(other)
        other.__dict__.update(
            gps=tuple(gps),
            likelihoods=self.likelihoods,
            scale=self.scale,
            absorb_info=None,
            fit_info=self.fit_info,
            training=False,
        )
        other._modules.update(self._modules)
        return other

    def _read_inputs(self, X: ArrayLike) -> Tensor:
        X = to_tensor(X, "X", like=self._reference)
        X = check_inputs(X, num_dims=X.shape[-1] if X.dim() else 1, like=self._reference)
        inputs = self.transform_inputs(X)
        return check_inputs(inputs, num_dims=self._reference.shape[-1], like=self._reference)

    def _transformed_inputs(self, X: ArrayLike) -> Tensor:
        """Transform inputs that the GPs will check."""
        return self.transform_inputs(to_tensor(X, "X", like=self._reference))

    def _transformed_outcomes(self, Y: ArrayLike, inputs: Tensor) -> Tensor:
        Y = to_tensor(Y, "Y", like=self._reference)
        if Y.dim() < 2 or Y.shape[-1] != self.num_outputs:
            hint = "Add the output axis with Y.unsqueeze(-1)." if self.num_outputs == 1 else "Give one column for each."
            raise ShapeError(
                f"Y must have shape (..., n, {self.num_outputs}), with the {self.num_outputs} outputs of the model on "
                f"the last axis, but has shape {tuple(Y.shape)}. {hint}"
            )
        if "outcome_transform" not in self._modules:
            return Y
        return self.outcome_transform(Y, X=inputs)[0]

    def _noise(
        self, j: int, prediction: Prediction, observation_noise: bool | Tensor, *, indices: Sequence[int]
    ) -> Tensor | None:
        if isinstance(observation_noise, Tensor):
            columns = len(indices) if observation_noise.shape[-1] == len(indices) else self.num_outputs
            position = list(indices).index(j) if columns == len(indices) else j
            return noise_column(observation_noise, position, columns)
        likelihood = self.likelihoods[j]
        if not observation_noise:
            return None
        if self.scale == "response" and not (likelihood is None or likelihood.is_gaussian):
            return None  # outcomes are drawn from the likelihood instead
        return expected_noise_variance(likelihood, prediction)

    def __repr__(self) -> str:
        return describe_model(type(self).__name__, *self._parts, num_dims=self.gps[0].process.reference.shape[-1])

    def _repr_html_(self) -> str:
        return model_table(type(self).__name__, *self._parts, num_dims=self.gps[0].process.reference.shape[-1])

    @property
    def _parts(self) -> tuple[list[Any], tuple[AbstractLikelihood | None, ...]]:
        return [gp.process for gp in self.gps], self.likelihoods

    def _untransformed(
        self, outputs: list[Output], inputs: Tensor, indices: Sequence[int]
    ) -> GPyTorchPosterior | TransformedPosterior:
        if "outcome_transform" not in self._modules:
            return LatentPosterior(outputs)
        transform: Any = self.outcome_transform
        if transform._is_linear:
            offset, scale = affine_map(transform, inputs, self.num_outputs)
            return LatentPosterior(
                [one.affine(scale[..., j], offset[..., j]) for j, one in zip(indices, outputs, strict=True)]
            )
        if list(indices) != list(range(self.num_outputs)):
            transform = transform.subset_output(list(indices))
        return transform.untransform_posterior(LatentPosterior(outputs), X=inputs)
