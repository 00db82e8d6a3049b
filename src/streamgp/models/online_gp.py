"""A BoTorch model around sparse GPs."""

import os
from collections.abc import Sequence
from typing import Any, final

import torch
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.models.utils.assorted import fantasize as fantasize_flag
from botorch.sampling.base import MCSampler
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from streamgp.checks import ArrayLike, check_choice, to_tensor
from streamgp.conditioning import ConditionedMultiOutputGP, MultiOutputGP, SparseGP
from streamgp.errors import OptionError, ShapeError, UnsupportedError
from streamgp.evidence import Evidence
from streamgp.gp import Prior, SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.models.arguments import (
    GP,
    known_noise,
    observation_by,
    read_gps,
    read_likelihoods,
)
from streamgp.models.fantasies import Fantasies, check_fantasy_noise
from streamgp.models.fitting import fit_outputs
from streamgp.models.frozen_model import SCALES, AbstractFrozenModel
from streamgp.models.multi_output import OnlineMultiOutputGP
from streamgp.models.observation_model import ObservationModel
from streamgp.models.saving import model_fields
from streamgp.models.transforms import check_keeps_outcomes, freeze_input_transform, freeze_outcome_transform
from streamgp.storage import load, register, save
from streamgp.training import FitInfo

__all__ = ["OnlineGP"]


@final
class OnlineGP(AbstractFrozenModel):
    r"""Sparse GPs as a BoTorch model that can be conditioned, fantasized, and fed with a stream.

    Outputs are independent; each has its own sparse GP and likelihood. Of a `MultiOutputGP`, whose outputs are
    correlated, `OnlineGP(gp, likelihood)` and `OnlineGP.fit(X, Y, outputs=...)` make an `OnlineMultiOutputGP`. The
    model is a frozen value: every method that learns returns a new one. Shapes are BoTorch's, inputs `(*b, q, d)` and
    outcomes `(*f, *b, q, o)`.

    ```python
    import torch
    from botorch.acquisition import qKnowledgeGradient

    X = torch.rand(12, 2, dtype=torch.float64)
    model = sg.OnlineGP.fit(X, torch.sin(5 * X).sum(-1, keepdim=True))
    look_ahead = qKnowledgeGradient(model, num_fantasies=4)
    look_ahead(torch.rand(1, 5, 2, dtype=torch.float64))  # one candidate, and a best point for each fantasy
    ```

    Attributes:
        gps: One GP for each output, in the units of the transforms.
        likelihoods: One for each output; None where only the latent function is of interest.
        scale: Whether `posterior` is that of the latent functions, or of the responses.
        absorb_info: Diagnostics of the last `absorb`, one for each output; None before.
        fit_info: What `OnlineGP.fit` tells of each output; None where the model was made from GPs.
    """

    def __new__(
        cls,
        gp: Any = None,
        likelihood: Any = None,
        *,
        input_transform: torch.nn.Module | None = None,
        outcome_transform: torch.nn.Module | None = None,
        scale: str = "latent",
    ) -> Any:
        """Make the model, or that of correlated outputs."""
        if not isinstance(gp, MultiOutputGP | ConditionedMultiOutputGP):
            return super().__new__(cls)
        _check_plain(input_transform=input_transform, outcome_transform=outcome_transform, scale=scale)
        return OnlineMultiOutputGP(gp, likelihood=likelihood)

    def __init__(
        self,
        gp: GP | Sequence[GP] | MultiOutputGP | ConditionedMultiOutputGP,
        likelihood: str | AbstractLikelihood | Sequence[str | AbstractLikelihood | None] | None = None,
        *,
        input_transform: torch.nn.Module | None = None,
        outcome_transform: torch.nn.Module | None = None,
        scale: str = "latent",
    ) -> None:
        """Make a model of GPs that are trained.

        Args:
            gp: A `SparseGP` or `ConditionedGP`, or one for each output, in the units of the transforms; or a
                `MultiOutputGP` in the units of the data, without transforms.
            likelihood: One of `streamgp.likelihoods` or its name, for all outputs, or one for each. None if noise will
                always be passed.
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
        train_X: ArrayLike,
        train_Y: ArrayLike,
        *,
        likelihood: str | AbstractLikelihood | Sequence[str | AbstractLikelihood | None] | None = None,
        train_Yvar: ArrayLike | None = None,
        num_inducing: int | str = 100,
        input_transform: torch.nn.Module | str | None = "default",
        outcome_transform: torch.nn.Module | str | None = "default",
        scale: str = "latent",
        start: "OnlineGP | None" = None,
        outputs: str | None = None,
        **options: Any,
    ) -> "OnlineGP":
        """Fit a sparse GP to each output, or one to all of them.

        Args:
            train_X: Inputs `(n, d)`.
            train_Y: Outcomes `(n, o)`.
            likelihood: One or its name for all outputs, or one for each; Gaussian with learned noise by default.
            train_Yvar: Known noise variances `(n, o)` of Gaussian outcomes, in the units of `train_Y`.
            num_inducing: Number of inducing points of each output, or `"auto"`.
            input_transform: A transform, which is fitted if it learns from data; `"default"` normalizes inputs to the
                unit cube by their range; None for none. Parameters of one in training mode, such as those of BoTorch's
                `Warp`, are learned together with the hyperparameters of a single output.
            outcome_transform: Likewise; `"default"` standardizes the outcomes that are Gaussian.
            scale: As in the constructor.
            start: A model that was fitted before: its hyperparameters and inducing points are the start, and its
                transforms take the place of the default ones.
            outputs: `"icm"`, `"lmc"` or `"independent"` for an `OnlineMultiOutputGP`, without transforms; outcomes
                may be missing (NaN).
            **options: Of `streamgp.fit`, the same for all outputs.

        Returns:
            The fitted model, with `fit_info`.
        """
        if outputs is not None:
            _check_plain(
                input_transform=None if input_transform == "default" else input_transform,
                outcome_transform=None if outcome_transform == "default" else outcome_transform,
                scale=scale,
                start=start,
                train_Yvar=train_Yvar,
            )
            correlated: Any = OnlineMultiOutputGP.fit(
                train_X, train_Y, outputs=outputs, likelihood=likelihood, num_inducing=num_inducing, **options
            )
            return correlated
        fitted = fit_outputs(
            train_X,
            train_Y,
            train_Yvar,
            likelihood=likelihood,
            input_transform=input_transform,
            outcome_transform=outcome_transform,
            start=start,
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
    def covar_module(self) -> torch.nn.Module:
        """The kernel, as models of BoTorch call it; a list of them for several outputs. Not to be changed."""
        return self._only([one.kernel for one in self._priors()])

    @property
    def mean_module(self) -> torch.nn.Module:
        """The mean function, likewise."""
        return self._only([one.mean_function for one in self._priors()])

    def _priors(self) -> list[Prior]:
        processes: list[Any] = [gp.process for gp in self.gps]
        return [one.prior if isinstance(one, SparseProcess) else one.base.prior for one in processes]

    @staticmethod
    def _only(modules: list[torch.nn.Module]) -> torch.nn.Module:
        return modules[0] if len(modules) == 1 else torch.nn.ModuleList(modules)

    def condition_on_observations(  # type: ignore[override] # takes no arguments that it would not read
        self, X: ArrayLike, Y: ArrayLike, noise: ArrayLike | None = None, *, propagate_grads: bool = True
    ) -> "OnlineGP":
        """Condition on observations, exactly, or through sites where the likelihood is not Gaussian.

        Args:
            X: Inputs `(*b, n, d)`; pairs `(*b, n, 2, d)` for comparisons; or rows of `streamgp.evidence` in the
                units of the data.
            Y: Outcomes `(*f, *b, n, o)`. Leading axes that inputs lack are fantasies. Of evidence, rows one after the
                other: the components of one gradient, then those of the next.
            noise: Noise variances that broadcast with `Y`, in the units of the outcome transform. `Y` is then taken as
                the latent values with Gaussian noise, whatever the likelihood.
            propagate_grads: For BoTorch, which passes it; gradients always reach inputs and outcomes.

        Returns:
            The conditioned model, larger by the observations; it can be conditioned again.
        """
        rows: Tensor | Evidence
        if isinstance(X, Evidence):
            evidence, targets = self._transformed_evidence(X, Y)
            rows, inputs = evidence, evidence.stand_in
        else:
            rows = inputs = self._transformed_inputs(X)
            targets = self._transformed_outcomes(Y, inputs)
        conditioned = []
        for j, gp in enumerate(self.gps):
            y = targets[..., j]
            how = self._observation(j, noise, y=y, inputs=inputs)
            conditioned.append(gp.condition(rows, y, **how))
        return self._with(conditioned)

    def _transformed_evidence(self, X: Evidence, Y: ArrayLike) -> tuple[Evidence, Tensor]:
        """Rows and outcomes in the units of the GPs: directions move as inputs do, outcomes as sums of them do."""
        rows = X.matched(self._reference).moved(self.transform_inputs)
        Y = to_tensor(Y, "Y", like=self._reference)
        if Y.dim() < 2 or Y.shape[-2:] != (rows.num_rows, self.num_outputs):
            raise ShapeError(
                f"Y must have shape (..., {rows.num_rows}, {self.num_outputs}), one row for each of the evidence and "
                f"one column for each output, but has shape {tuple(Y.shape)}. Flatten gradients with "
                "Y.reshape(-1, 1)."
            )
        if "outcome_transform" not in self._modules:
            return rows, Y
        zero, one, two = (
            self.outcome_transform(torch.full_like(Y, value), X=rows.stand_in)[0] for value in (0.0, 1.0, 2.0)
        )
        if not torch.allclose(two - one, one - zero):
            raise UnsupportedError(
                f"The outcome transform {type(self.outcome_transform).__name__} is not linear, so that sums and slopes "
                "of outcomes have no transform. Use Standardize, or none."
            )
        return rows, Y * (one - zero) + rows.of_constant.unsqueeze(-1) * zero

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
        check_fantasy_noise(observation_noise, observations=observations)
        with fantasize_flag():
            inputs = self._read_inputs(X)
        fantasies = Fantasies.read(self.gps, self.likelihoods, inputs, sampler=sampler, evaluation_mask=evaluation_mask)
        if observations:
            return self._with(fantasies.observed())
        return self._with(fantasies.gaussian(observation_noise))

    def absorb(self, X: ArrayLike, Y: ArrayLike, noise: ArrayLike | None = None, **options: Any) -> "OnlineGP":
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
            how = self._observation(j, noise, y=y, inputs=inputs)
            new, info = gp.absorb(inputs, y, **how, **options)
            absorbed.append(new)
            infos.append(info)
        model = self._with(absorbed)
        model.absorb_info = tuple(infos)
        return model

    def get_fantasy_model(self, inputs: Tensor, targets: Tensor, noise: Tensor | None = None) -> "OnlineGP":
        """GPyTorch's name for conditioning a model of one output; all in the units of the transforms."""
        how = self._observation(0, None if noise is None else noise.unsqueeze(-1), y=targets, inputs=inputs)
        return self._with([self.gps[0].condition(inputs, targets, **how)])

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

    def _observation(self, j: int, noise: ArrayLike | None, *, y: Tensor, inputs: Tensor) -> dict[str, Any]:
        """Return the observation of output `j`, as keyword arguments of `condition`."""
        if noise is not None:
            noise = to_tensor(noise, "noise", like=self._reference)
            return {"noise_variance": known_noise(noise, j, self.num_outputs, y=y, inputs=inputs)}
        return observation_by(self.likelihoods[j], j, like=self._reference)


def _check_plain(*, scale: str, **given: object) -> None:
    """Refuse what a model of correlated outputs does not have."""
    names = [name for name, value in given.items() if value is not None] + ["scale"] * (scale != "latent")
    if names:
        raise OptionError(
            f"A model of correlated outputs is in the units of the data and of the latent functions, and takes no "
            f"{', '.join(names)}. Leave it out, or give each output a SparseGP of its own."
        )


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
