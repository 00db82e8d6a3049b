"""Several correlated outputs as a BoTorch model."""

import os
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import ModelList
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.sampling.base import MCSampler
from botorch.sampling.list_sampler import ListSampler
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

from streamgp.checks import check_float
from streamgp.conditioning import ConditionedMultiOutputGP, MultiOutputGP
from streamgp.conditioning.absorb import AbsorbInfo
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.models.arguments import read_indices, read_likelihoods
from streamgp.models.observation_model import expected_noise_variance
from streamgp.models.posterior import describe_model, model_table
from streamgp.shapes import broadcast_shapes
from streamgp.storage import register, save
from streamgp.training import fit

__all__ = ["OnlineMultiOutputGP", "check_sparse", "read_multi_output_gp", "read_output_likelihoods"]


@final
class OnlineMultiOutputGP(ModelList):
    """A `MultiOutputGP` behind BoTorch's interface: a correlated posterior, fantasies and look-ahead.

    `OnlineGP` makes one of a `MultiOutputGP`. Outcomes have a column for each output, and NaN where one was not
    observed. Each output has a likelihood of its own; the posterior is that of the latent functions. There are no
    transforms: `MultiOutputGP` has the units of the data.

    To BoTorch it is a list of models, since acquisition functions that look at some of the outputs only ask for one;
    the list is empty, as outputs that are correlated cannot be taken apart.

    ```python
    import math

    import torch

    X = torch.rand(12, 1, dtype=torch.float64)
    Y = torch.cat([X, X.sin()], dim=-1)
    Y[3, 1] = math.nan  # not observed
    model = sg.OnlineGP.fit(X, Y, outputs="lmc", num_inducing=8, max_iterations=20)
    model.posterior(X[:3]).mean  # (3, 2)
    ```

    Attributes:
        gp: The GP.
        likelihoods: One for each output of the GP.
        outputs: Which outputs of the GP are those of the model; all, except for what `subset_output` returns.
        absorb_info: Diagnostics of the last `absorb`; None before.
    """

    def __init__(self, gp: Any, noise_variance: Any = None, *, likelihood: Any = None) -> None:
        """Make a model of a GP.

        Args:
            gp: A `MultiOutputGP`, or one that was conditioned, in the units of inputs and outcomes.
            noise_variance: Variance of the Gaussian noise of each output `(o,)`, or a number for all.
            likelihood: Instead, a list with a likelihood or its name for each output, or one for all.
        """
        super().__init__()
        self.gp = read_multi_output_gp(gp)
        self.likelihoods = read_output_likelihoods(gp, noise_variance, likelihood)
        self.outputs = tuple(range(gp.num_outputs))
        self.absorb_info: AbsorbInfo | None = None
        torch.nn.Module.train(self, False)

    @classmethod
    def fit(cls, train_X: Tensor, train_Y: Tensor, *, outputs: str = "lmc", **options: Any) -> "OnlineMultiOutputGP":
        """Fit to inputs `(n, d)` and outcomes `(n, o)`, NaN where an output was not observed.

        Args:
            train_X: Inputs.
            train_Y: Outcomes.
            outputs: How outputs are related; as for `streamgp.fit`, as are the options.
            **options: Such as `rank`, `likelihood` and `num_inducing`.
        """
        result = fit(train_X, train_Y, outputs=outputs, **options)
        return cls(result.gp, likelihood=result.likelihood)

    def __repr__(self) -> str:
        return describe_model("OnlineMultiOutputGP", *self._parts, num_dims=self.gp.num_dims)

    def _repr_html_(self) -> str:
        return model_table("OnlineMultiOutputGP", *self._parts, num_dims=self.gp.num_dims)

    @property
    def _parts(self) -> tuple[list[Any], list[AbstractLikelihood]]:
        return [self.gp.row_gp.process], [self.likelihoods[j] for j in self.outputs]

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes of the model; those of fantasies come first."""
        return self.gp.batch_shape

    @property
    def is_gaussian(self) -> bool:
        """Tell whether all outputs have Gaussian noise."""
        return all(each.is_gaussian for each in self.likelihoods)

    def posterior(
        self,
        X: Tensor,
        output_indices: Sequence[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | Callable[..., Any] | None = None,
    ) -> Any:
        """Predict at inputs.

        Args:
            X: Inputs `(*b, q, d)`.
            output_indices: Outputs to predict; all by default.
            observation_noise: Whether to add the noise of observations, for likelihoods that are not Gaussian that with
                which one would tell of the latent function; a tensor that broadcasts with `(*b, q, o)` gives its
                variances.
            posterior_transform: Applied last.

        Returns:
            A `GPyTorchPosterior` of all inputs and outputs jointly.
        """
        indices = read_indices(output_indices, self.num_outputs)
        prediction = self.gp.predict(X, output=[self.outputs[j] for j in indices], covariance=True)
        mean, covariance = prediction.mean, prediction.covariance
        batch = broadcast_shapes(mean.shape[:-2], covariance.shape[:-2])
        if observation_noise is not False:
            noise = self._expected_noise(X)[..., indices] if observation_noise is True else observation_noise
            batch = broadcast_shapes(batch, noise.shape[:-2])
            covariance = covariance + torch.diag_embed(noise.expand(*batch, *mean.shape[-2:]).flatten(-2))
        mean, covariance = mean.expand(*batch, *mean.shape[-2:]), covariance.expand(*batch, *covariance.shape[-2:])
        # As an operator: outputs that share one latent function are singular together, and torch would refuse them.
        operator = to_linear_operator(covariance)
        if len(indices) == 1:
            distribution = MultivariateNormal(mean.squeeze(-1), operator)
        else:
            distribution = MultitaskMultivariateNormal(mean, operator)
        posterior = GPyTorchPosterior(distribution)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def condition_on_observations(  # type: ignore[override] # takes no arguments that it would not read
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, *, propagate_grads: bool = True
    ) -> "OnlineMultiOutputGP":
        """Condition on outcomes of all outputs or of some: exactly where they are Gaussian.

        Args:
            X: Inputs `(*b, n, d)`.
            Y: Outcomes `(*f, *b, n, o)`, NaN where an output was not observed; leading axes that inputs lack are
                fantasies.
            noise: Variances of Gaussian noise `(*b, n, o)`, instead of the model's likelihoods.
            propagate_grads: For BoTorch, which passes it; gradients always reach inputs and outcomes.
        """
        seen = self._seen() if noise is None else {"noise_variance": self._spread(noise, 1.0)}
        return self._with(self.gp.condition(X, self._spread(Y, torch.nan), **seen))

    def fantasize(  # type: ignore[override]
        self,
        X: Tensor,
        sampler: MCSampler,
        observation_noise: Tensor | None = None,
        *,
        evaluation_mask: Tensor | None = None,
        propagate_grads: bool = True,
    ) -> "OnlineMultiOutputGP":
        """Condition on outcomes that are drawn from the posterior, with noise.

        Args:
            X: Inputs `(*b, n, d)`.
            sampler: Sampler of BoTorch; the first of a `ListSampler`, as all outputs are drawn jointly.
            observation_noise: Variances `(*b, n, o)` of the noise, instead of the model's.
            evaluation_mask: Which outputs are observed at which input, `(n, o)`; all by default.
            propagate_grads: For BoTorch, which passes it; gradients always reach inputs and outcomes.

        Returns:
            The model with the sampler's axes before its own.
        """
        noise = self._expected_noise(X) if observation_noise is None else observation_noise
        joint = sampler.samplers[0] if isinstance(sampler, ListSampler) else sampler
        drawn = joint(self.posterior(X, observation_noise=noise))
        if evaluation_mask is not None:
            if tuple(evaluation_mask.shape) != (X.shape[-2], self.num_outputs):
                raise ShapeError(
                    f"evaluation_mask must have shape {(X.shape[-2], self.num_outputs)}, one row for each input and "
                    f"one column for each output, but has shape {tuple(evaluation_mask.shape)}."
                )
            if not bool(evaluation_mask.any()):
                raise OptionError("evaluation_mask must let at least one output be observed, but lets none.")
            drawn = torch.where(evaluation_mask, drawn, torch.nan)
        return self.condition_on_observations(X, drawn, noise=noise)

    def absorb(self, X: Tensor, Y: Tensor, **options: Any) -> "OnlineMultiOutputGP":
        """Learn from outcomes in constant size; options of `MultiOutputGP.absorb`."""
        absorbed, info = check_sparse(self.gp).absorb(X, self._spread(Y, torch.nan), **self._seen(), **options)
        model = self._with(absorbed)
        model.absorb_info = info
        return model

    def subset_output(self, idcs: Sequence[int]) -> "OnlineMultiOutputGP":
        """The model of some of the outputs; what is learned of them still tells of the others."""
        subset = self._with(self.gp)
        subset.outputs = tuple(self.outputs[j] for j in read_indices(idcs, self.num_outputs))
        return subset

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads."""
        save(self, path)

    def _with(self, gp: MultiOutputGP | ConditionedMultiOutputGP) -> "OnlineMultiOutputGP":
        """Return the model with another belief."""
        return _rebuild(gp, self.likelihoods, self.outputs)

    def _spread(self, columns: Tensor, rest: float) -> Tensor:
        """Columns of the model's outputs among those of all outputs of the GP."""
        if self.outputs == tuple(range(self.gp.num_outputs)):
            return columns
        if columns.shape[-1:] != (self.num_outputs,):
            raise ShapeError(
                f"There must be one column for each of the {self.num_outputs} outputs of the model, but the shape is "
                f"{tuple(columns.shape)}."
            )
        whole = columns.new_full((*columns.shape[:-1], self.gp.num_outputs), rest)
        whole[..., list(self.outputs)] = columns
        return whole

    def _seen(self) -> dict[str, Any]:
        """Return the likelihoods or the noise of outcomes, as the GP takes them."""
        if self.is_gaussian:
            return {"noise_variance": self._gaussian_noise()}
        return {"likelihood": list(self.likelihoods)}

    def _gaussian_noise(self) -> Tensor:
        reference = self.gp.row_gp.process.reference
        noise = [each.gaussian_noise_variance for each in self.likelihoods]
        return torch.stack([each.to(reference).reshape(()) for each in noise if each is not None])

    def _expected_noise(self, X: Tensor) -> Tensor:
        """The noise with which outcomes to come would tell of the latent functions, `(o,)` or `(*b, q, o)`."""
        if self.is_gaussian:
            return self._gaussian_noise()[list(self.outputs)]
        each = [expected_noise_variance(self.likelihoods[j], self.gp.predict(X, output=j).rows) for j in self.outputs]
        return torch.stack(torch.broadcast_tensors(*each), dim=-1)


def read_multi_output_gp(gp: Any) -> MultiOutputGP | ConditionedMultiOutputGP:
    """Check that a GP has several outputs."""
    if not isinstance(gp, MultiOutputGP | ConditionedMultiOutputGP):
        raise ArgumentTypeError(
            f"gp must be a MultiOutputGP, but is a {type(gp).__name__}. Fit one with streamgp.fit(outputs=...), "
            "or use OnlineGP for independent outputs."
        )
    return gp


def check_sparse(gp: MultiOutputGP | ConditionedMultiOutputGP) -> MultiOutputGP:
    """Refuse to absorb into what was conditioned."""
    if not isinstance(gp, MultiOutputGP):
        raise UnsupportedError(
            "The model was conditioned on observations or fantasies, and such a model cannot absorb more in "
            "constant size. Absorb real data first, and condition the result."
        )
    return gp


def read_output_likelihoods(
    gp: MultiOutputGP | ConditionedMultiOutputGP, noise_variance: Any, likelihood: Any
) -> tuple[AbstractLikelihood, ...]:
    """One likelihood for each output, from likelihoods or from variances of Gaussian noise."""
    o, reference = gp.num_outputs, gp.row_gp.process.reference
    if (noise_variance is None) == (likelihood is None):
        raise OptionError("Pass either noise_variance or likelihood: a variance or a likelihood for each output.")
    if likelihood is not None:
        given = read_likelihoods(likelihood, o)
        if None in given:
            raise OptionError(f"Each of the {o} outputs needs a likelihood, but output {given.index(None)} has None.")
        return tuple(each for each in given if each is not None)
    noise = check_float(noise_variance, "noise_variance", like=reference).to(reference)
    if noise.dim() > 1 or (noise.dim() == 1 and len(noise) != o):
        raise ShapeError(
            f"noise_variance must be a number or have shape ({o},), one for each output, but has shape "
            f"{tuple(noise.shape)}."
        )
    return tuple(Gaussian(each) for each in noise.detach().expand(o))


def _rebuild(
    gp: MultiOutputGP | ConditionedMultiOutputGP, likelihoods: tuple[AbstractLikelihood, ...], outputs: tuple[int, ...]
) -> OnlineMultiOutputGP:
    """A model from its parts."""
    model = OnlineMultiOutputGP(gp, likelihood=likelihoods)
    model.outputs = tuple(outputs)
    return model


register(
    OnlineMultiOutputGP,
    to_fields=lambda model: {"gp": model.gp, "likelihoods": model.likelihoods, "outputs": model.outputs},
    from_fields=_rebuild,
)
