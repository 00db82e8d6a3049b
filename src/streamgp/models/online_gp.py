"""A BoTorch model around sparse GPs."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import torch
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.models.utils.assorted import fantasize as fantasize_flag
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.transformed import TransformedPosterior
from botorch.sampling.base import MCSampler
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from streamgp.checks import check_choice, check_inputs
from streamgp.conditioning import AbsorbInfo, SparseGP
from streamgp.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from streamgp.gp import Prediction
from streamgp.likelihoods import AbstractLikelihood
from streamgp.models.arguments import GP, aligned, known_noise, noise_column, read_gps, read_indices, read_likelihoods
from streamgp.models.fantasies import Fantasies
from streamgp.models.fitting import check_training_data, fit_outputs
from streamgp.models.observation_model import ObservationModel
from streamgp.models.output import Output, Term
from streamgp.models.posterior import LatentPosterior
from streamgp.models.response import response_posterior
from streamgp.models.saving import DESCRIPTION, STATE, load_state, model_fields, model_state
from streamgp.models.site_noise import expected_noise_variance
from streamgp.models.transforms import (
    affine_map,
    check_keeps_outcomes,
    freeze_input_transform,
    freeze_outcome_transform,
)
from streamgp.shapes import broadcast_shapes
from streamgp.storage import load, register, save
from streamgp.training import FitInfo

__all__ = ["OnlineGP"]

SCALES = ("latent", "response")


@final
class OnlineGP(GPyTorchModel, FantasizeMixin):
    r"""Sparse GPs as a BoTorch model that can be conditioned, fantasised, and fed with a stream.

    Outputs are independent; each has its own sparse GP and likelihood. The model is a frozen value: every method that
    learns returns a new one. Shapes are BoTorch's, inputs `(*b, q, d)` and outcomes `(*f, *b, q, o)`.

    Attributes:
        gps: One GP for each output, in the units of the transforms.
        likelihoods: One for each output; None where only the latent function is of interest.
        scale: Whether `posterior` is that of the latent functions, or of the responses.
        absorb_info: Diagnostics of the last `absorb`, one for each output; None before.
        fit_info: What `OnlineGP.fit` tells of each output; None where the model was made from GPs.
    """

    gps: tuple[GP, ...]
    likelihoods: tuple[AbstractLikelihood | None, ...]
    scale: str
    absorb_info: tuple[AbsorbInfo, ...] | None
    fit_info: tuple[Any, ...] | None

    def __init__(
        self,
        gp: GP | Sequence[GP],
        likelihood: AbstractLikelihood | Sequence[AbstractLikelihood | None] | None = None,
        *,
        input_transform: torch.nn.Module | None = None,
        outcome_transform: torch.nn.Module | None = None,
        scale: str = "latent",
    ) -> None:
        """Make a model of GPs that are trained.

        Args:
            gp: A `SparseGP` or `ConditionedGP`, or one for each output, in the units of the transforms.
            likelihood: One of `streamgp.likelihoods` for all outputs, or one for each. None if noise will always be
                passed.
            input_transform: A fitted input transform of BoTorch, copied; applied to every input.
            outcome_transform: A fitted outcome transform of BoTorch, copied; applied to outcomes, undone in posteriors.
            scale: `"latent"`, or `"response"` for posteriors of expected responses (rates, probabilities).
        """
        super().__init__()
        self.gps = read_gps(gp)
        self.likelihoods = read_likelihoods(likelihood, len(self.gps))
        self.scale = check_choice(scale, SCALES, "scale")
        self.absorb_info = self.fit_info = None
        self.likelihood = ObservationModel(self.likelihoods)
        if input_transform is not None:
            self.input_transform = freeze_input_transform(input_transform, self._reference)
        if outcome_transform is not None:
            self.outcome_transform = freeze_outcome_transform(outcome_transform, self._reference)
            check_keeps_outcomes(self.outcome_transform, self.likelihoods, self._reference)
        torch.nn.Module.train(self, False)

    @classmethod
    def fit(
        cls,
        train_X: Tensor,
        train_Y: Tensor,
        *,
        likelihood: AbstractLikelihood | Sequence[AbstractLikelihood | None] | None = None,
        train_Yvar: Tensor | None = None,
        num_inducing: int | str = 100,
        input_transform: torch.nn.Module | str | None = "default",
        outcome_transform: torch.nn.Module | str | None = "default",
        scale: str = "latent",
        start: "OnlineGP | None" = None,
        **options: Any,
    ) -> "OnlineGP":
        """Fit a sparse GP to each output.

        Args:
            train_X: Inputs `(n, d)`.
            train_Y: Outcomes `(n, o)`.
            likelihood: One for all outputs, or one for each; Gaussian with learned noise by default.
            train_Yvar: Known noise variances `(n, o)` of Gaussian outcomes, in the units of `train_Y`.
            num_inducing: Number of inducing points of each output, or `"auto"`.
            input_transform: A transform, which is fitted if it learns from data; `"default"` normalises inputs to the
                unit cube by their range; None for none.
            outcome_transform: Likewise; `"default"` standardises the outcomes that are Gaussian.
            scale: As in the constructor.
            start: A model that was fitted before: its hyperparameters and inducing points are the start, and its
                transforms take the place of the default ones.
            **options: Of `streamgp.fit`, the same for all outputs.

        Returns:
            The fitted model, with `fit_info`.
        """
        check_training_data(train_X, train_Y)
        num_outputs = train_Y.shape[-1]
        likelihoods = read_likelihoods(likelihood, num_outputs)
        starts: Sequence[Any] = (None,) * num_outputs
        if start is not None:
            starts, input_transform, outcome_transform = _read_start(
                start, likelihoods, input_transform, outcome_transform
            )
        fitted = fit_outputs(
            train_X,
            train_Y,
            train_Yvar,
            likelihoods=likelihoods,
            input_transform=input_transform,
            outcome_transform=outcome_transform,
            starts=starts,
            options={"num_inducing": num_inducing, **options},
        )
        model = cls(
            fitted.gps,
            fitted.likelihoods,
            input_transform=fitted.input_transform,
            outcome_transform=fitted.outcome_transform,
            scale=scale,
        )
        model.fit_info = fitted.info
        return model

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
        X: Tensor,
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

    @property
    def _supports_cache_root(self) -> bool:
        """BoTorch's question whether posteriors are Gaussian, so that noisy improvement may cache a root of them."""
        return self.scale == "latent"

    def forward(self, X: Tensor) -> MultivariateNormal:
        """The distribution of the posterior, in the user's units, which some acquisition functions ask for."""
        posterior: Any = self.posterior(X)
        return posterior.distribution

    def condition_on_observations(  # type: ignore[override] # takes no arguments that it would not read
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, *, propagate_grads: bool = True
    ) -> "OnlineGP":
        """Condition on observations, exactly, or through sites where the likelihood is not Gaussian.

        Args:
            X: Inputs `(*b, n, d)`; pairs `(*b, n, 2, d)` for comparisons.
            Y: Outcomes `(*f, *b, n, o)`. Leading axes that inputs lack are fantasies.
            noise: Noise variances that broadcast with `Y`, in the units of the outcome transform. `Y` is then taken as
                the latent values with Gaussian noise, whatever the likelihood.
            propagate_grads: For BoTorch, which passes it; gradients always reach inputs and outcomes.

        Returns:
            The conditioned model, larger by the observations; it can be conditioned again.
        """
        inputs = self._transformed_inputs(X)
        targets = self._transformed_outcomes(Y, inputs)
        conditioned = []
        for j, gp in enumerate(self.gps):
            y = targets[..., j]
            how = self._observed(j, noise, y=y, inputs=inputs)
            conditioned.append(gp.condition(inputs, y, **how))
        return self._with(conditioned)

    def fantasize(  # type: ignore[override] # likewise
        self,
        X: Tensor,
        sampler: MCSampler,
        observation_noise: Tensor | None = None,
        *,
        observations: bool = False,
        evaluation_mask: Tensor | None = None,
        propagate_grads: bool = True,
    ) -> "OnlineGP":
        r"""Condition on outcomes that are drawn from the posterior.

        By default a fantasy is Gaussian and differentiable: a draw of the latent function with noise, the likelihood's
        own or $W^{-1}$ from its expected curvature, and the model is conditioned on that draw with the same noise.
        With `observations`, latent values are drawn, outcomes are drawn for them from the likelihood, and the model is
        conditioned on those outcomes through their sites: exact, but without gradient through the outcomes.

        Args:
            X: Inputs `(*b, n, d)`.
            sampler: Sampler of BoTorch; a `ListSampler` has one for each output.
            observation_noise: Variances `(*b, 1 or n, o)` of the noise, instead of the likelihood's, in the units of
                the outcome transform.
            observations: Whether to draw real outcomes. Draws repeat with the sampler's seed.
            evaluation_mask: Which outputs are observed at which input, `(n, o)`; needs a `ListSampler`.
            propagate_grads: For BoTorch, which passes it; gradients always reach inputs and outcomes.

        Returns:
            The model with the sampler's axes before its own.
        """
        if observation_noise is not None and not isinstance(observation_noise, Tensor):
            raise DTypeError(
                f"observation_noise must be a tensor of variances or None in fantasize, but is {observation_noise!r}. "
                "Leave it out to use the likelihood's own noise."
            )
        with fantasize_flag():
            inputs = self._read_inputs(X)
        fantasies = Fantasies.read(self.gps, self.likelihoods, inputs, sampler=sampler, evaluation_mask=evaluation_mask)
        if observations:
            if observation_noise is not None:
                raise OptionError(
                    "Both observations=True and observation_noise were given, but outcomes that are drawn from the "
                    "likelihood bring its own noise. Pass one."
                )
            return self._with(fantasies.observed())
        noises = [
            None if observation_noise is None else noise_column(observation_noise, j, self.num_outputs)
            for j in range(self.num_outputs)
        ]
        return self._with(fantasies.gaussian(noises))

    def absorb(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **options: Any) -> "OnlineGP":
        """Learn from observations in constant size.

        Args:
            X: Inputs `(n, d)`; pairs `(n, 2, d)` for comparisons.
            Y: Outcomes `(n, o)`.
            noise: As in `condition_on_observations`.
            **options: Of `SparseGP.absorb`: `sites`, `inducing`, `num_inducing`.

        Returns:
            A new model with as many inducing points as before, and diagnostics in its `absorb_info`.
        """
        inputs = self._transformed_inputs(X)
        targets = self._transformed_outcomes(Y, inputs)
        absorbed, infos = [], []
        for j, gp in enumerate(self.gps):
            if not isinstance(gp, SparseGP):
                raise UnsupportedError(
                    f"Output {j} was conditioned on {gp.num_observations} observations or fantasies, and such a model "
                    "cannot absorb more in constant size. Absorb real data first, and condition the result."
                )
            y = targets[..., j]
            how = self._observed(j, noise, y=y, inputs=inputs)
            new, info = gp.absorb(inputs, y, **how, **options)
            absorbed.append(new)
            infos.append(info)
        model = self._with(absorbed)
        model.absorb_info = tuple(infos)
        return model

    def get_fantasy_model(self, inputs: Tensor, targets: Tensor, noise: Tensor | None = None) -> "OnlineGP":
        """GPyTorch's name for conditioning a model of one output; all in the units of the transforms."""
        how = self._observed(0, None if noise is None else noise.unsqueeze(-1), y=targets, inputs=inputs)
        return self._with([self.gps[0].condition(inputs, targets, **how)])

    def subset_output(self, idcs: Sequence[int]) -> "OnlineGP":
        """The model of some of the outputs."""
        indices = read_indices(idcs, self.num_outputs)
        subset = self._with([self.gps[j] for j in indices])
        subset.likelihoods = tuple(self.likelihoods[j] for j in indices)
        subset.likelihood = ObservationModel(subset.likelihoods)
        if "outcome_transform" in self._modules:
            subset.outcome_transform = self.outcome_transform.subset_output(indices).eval()
        return subset

    def on_scale(self, scale: str) -> "OnlineGP":
        """The same model with posteriors on the `"latent"` or the `"response"` scale."""
        other = self._with(self.gps)
        other.scale = check_choice(scale, SCALES, "scale")
        return other

    def transform_inputs(self, X: Tensor, input_transform: torch.nn.Module | None = None) -> Tensor:
        """Apply the input transform, or the given one."""
        if input_transform is not None:
            return input_transform.to(X)(X)
        return self.input_transform(X) if "input_transform" in self._modules else X

    def train(self, mode: bool = True) -> "OnlineGP":
        """Do nothing: the model and its transforms are frozen."""
        return self

    def eval(self) -> "OnlineGP":
        """Do nothing: the model and its transforms are frozen."""
        return self

    def load_state_dict(  # type: ignore[override] # as GPyTorchModel has it
        self, state_dict: Mapping[str, Any], strict: bool = True, keep_transforms: bool = True, assign: bool = False
    ) -> None:
        """Take over the GPs, likelihoods and transforms of a model with as many outputs and the same transforms.

        The state is complete: the model then predicts as the other does, whatever it was fitted to.
        """
        torch.nn.Module.load_state_dict(self, state_dict, strict=strict, assign=assign)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `load` reads: arrays and a JSON description, no pickle; atomically."""
        save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        kernel: Kernel | None = None,
        mean: Mean | None = None,
        device: torch.device | str | None = None,
    ) -> "OnlineGP":
        """Read what `save` wrote; the options are those of `streamgp.load`."""
        return load(path, kernel=kernel, mean=mean, device=device, kind=cls)

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

    def _apply(self, fn: Any, recurse: bool = True) -> "OnlineGP":
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

    def _with(self, gps: Sequence[GP]) -> "OnlineGP":
        """The model with other GPs, sharing the frozen transforms."""
        other = OnlineGP.__new__(OnlineGP)
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

    def _read_inputs(self, X: Tensor) -> Tensor:
        X = check_inputs(X, num_dims=X.shape[-1] if isinstance(X, Tensor) and X.dim() else 1, like=self._reference)
        inputs = self.transform_inputs(X)
        return check_inputs(inputs, num_dims=self._reference.shape[-1], like=self._reference)

    def _transformed_inputs(self, X: Tensor) -> Tensor:
        """Transform inputs that the GPs will check."""
        return self.transform_inputs(X) if isinstance(X, Tensor) else X

    def _transformed_outcomes(self, Y: Tensor, inputs: Tensor) -> Tensor:
        if not isinstance(Y, Tensor):
            raise DTypeError(
                f"Y must be a torch.Tensor, but is a {type(Y).__name__}. Convert it with torch.as_tensor(Y)."
            )
        if Y.dim() < 2 or Y.shape[-1] != self.num_outputs:
            hint = "Add the output axis with Y.unsqueeze(-1)." if self.num_outputs == 1 else "Give one column for each."
            raise ShapeError(
                f"Y must have shape (..., n, {self.num_outputs}), with the {self.num_outputs} outputs of the model on "
                f"the last axis, but has shape {tuple(Y.shape)}. {hint}"
            )
        if "outcome_transform" not in self._modules:
            return Y
        return self.outcome_transform(Y, X=inputs)[0]

    def _observed(self, j: int, noise: Tensor | None, *, y: Tensor, inputs: Tensor) -> dict[str, Any]:
        """How output `j` was observed, as keyword arguments of `condition`."""
        likelihood = self.likelihoods[j]
        if noise is not None:
            return {"noise_variance": known_noise(noise, j, self.num_outputs, y=y, inputs=inputs)}
        if likelihood is None:
            raise OptionError(
                f"Output {j} has no likelihood, so how far its observations can be trusted is not known. "
                "Pass noise=..., or make the OnlineGP with a likelihood."
            )
        known = likelihood.gaussian_noise_variance
        if known is not None:  # the mean, where past observations had their own
            return {"noise_variance": known.to(self._reference).mean()}
        return {"likelihood": likelihood}

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


def _rebuild(
    gps: tuple[GP, ...],
    likelihoods: tuple[AbstractLikelihood | None, ...],
    input_transform: InputTransform | None = None,
    outcome_transform: OutcomeTransform | None = None,
    scale: str = "latent",
    fit_info: tuple[FitInfo, ...] | None = None,
) -> OnlineGP:
    """A model from its parts, whose transforms were frozen."""
    for transform in (input_transform, outcome_transform):
        if transform is not None:
            transform.eval()
    model = OnlineGP(
        gps, likelihoods, input_transform=input_transform, outcome_transform=outcome_transform, scale=scale
    )
    model.fit_info = fit_info
    return model


register(OnlineGP, to_fields=model_fields, from_fields=_rebuild)


def _read_start(
    start: OnlineGP,
    likelihoods: Sequence[AbstractLikelihood | None],
    input_transform: torch.nn.Module | str | None,
    outcome_transform: torch.nn.Module | str | None,
) -> tuple[Sequence[GP], torch.nn.Module | str | None, torch.nn.Module | str | None]:
    """GPs to start from, and the transforms whose units they have."""
    if start.num_outputs != len(likelihoods) or not all(isinstance(gp, SparseGP) for gp in start.gps):
        raise OptionError(
            f"start must be a fitted model of {len(likelihoods)} outputs that was not conditioned since, but has "
            f"{start.num_outputs}, as {', '.join(type(gp).__name__ for gp in start.gps)}."
        )
    if input_transform == "default":
        input_transform = start._modules.get("input_transform")
    if outcome_transform == "default":
        outcome_transform = start._modules.get("outcome_transform")
    return start.gps, input_transform, outcome_transform
