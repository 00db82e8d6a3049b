"""Tasks that inform each other as a BoTorch model: inputs have a column that says which task is looked at."""

import os
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.sampling.base import MCSampler
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

from streamgp.conditioning import ConditionedMultiOutputGP, MultiOutputGP
from streamgp.display import html_table, shown_point
from streamgp.errors import OptionError, ShapeError, ValueRangeError
from streamgp.gp import Prediction
from streamgp.models.multi_output import check_sparse, read_multi_output_gp, read_output_likelihoods
from streamgp.shapes import broadcast_shapes
from streamgp.storage import register, save
from streamgp.training import fit

__all__ = ["OnlineMultiTaskGP"]


@final
class OnlineMultiTaskGP(Model):
    """A `MultiOutputGP` whose outputs are tasks, as in BoTorch's `MultiTaskGP`: a cheap task informs a dear one.

    Inputs have `d + 1` columns, one of which says which task is looked at; those with `d` columns look at the task that
    matters, `output_task`. There is one outcome for each input. Noise is Gaussian, with a variance for each task.
    """

    def __init__(self, gp: Any, noise_variance: Any, *, task_feature: int = -1, output_task: int = 0) -> None:
        """Make a model of a GP.

        Args:
            gp: A `MultiOutputGP`, or one that was conditioned; its outputs are the tasks.
            noise_variance: Variance of the noise of each task `(o,)`, or a number for all.
            task_feature: Column of the task, counted from the end if negative.
            output_task: The task of inputs without such a column.
        """
        super().__init__()
        self.gp = read_multi_output_gp(gp)
        self.num_tasks = gp.num_outputs
        likelihoods = read_output_likelihoods(gp, noise_variance, None)
        self.noise_variance = torch.stack([torch.as_tensor(each.gaussian_noise_variance) for each in likelihoods])
        width = gp.row_gp.process.reference.shape[-1]
        if not -width <= task_feature < width:
            raise OptionError(f"task_feature must be from {-width} to {width - 1}, but is {task_feature}.")
        self.task_feature = task_feature % width
        if not 0 <= output_task < self.num_tasks:
            raise OptionError(f"output_task must be from 0 to {self.num_tasks - 1}, but is {output_task}.")
        self.output_task = output_task
        torch.nn.Module.train(self, False)

    def __repr__(self) -> str:
        return (
            f"OnlineMultiTaskGP({self.num_tasks} tasks, {self.gp.row_gp.process.num_inducing} inducing points, "
            f"{self.gp.num_dims} inputs beside the task, task {self.output_task} by default)"
        )

    def _repr_html_(self) -> str:
        facts = {
            "tasks": self.num_tasks,
            "inducing points": self.gp.row_gp.process.num_inducing,
            "inputs beside the task": self.gp.num_dims,
            "task by default": self.output_task,
            "noise variance": shown_point(self.noise_variance),
        }
        return html_table("OnlineMultiTaskGP", facts)

    @classmethod
    def fit(
        cls,
        train_X: Tensor,
        train_Y: Tensor,
        *,
        task_feature: int = -1,
        output_task: int = 0,
        outputs: str = "icm",
        **options: Any,
    ) -> "OnlineMultiTaskGP":
        """Fit to inputs `(n, d + 1)` with a column for the task, and outcomes `(n, 1)`.

        Args:
            train_X: Inputs.
            train_Y: Outcomes.
            task_feature: Column of the task.
            output_task: The task that matters.
            outputs: How tasks are related; as for `streamgp.fit`, as are the options.
            **options: Such as `rank` and `num_inducing`.
        """
        if train_X.dim() != 2 or train_Y.shape != (len(train_X), 1):
            raise ShapeError(
                f"train_X must have shape (n, d + 1) and train_Y (n, 1), but have shapes {tuple(train_X.shape)} and "
                f"{tuple(train_Y.shape)}."
            )
        place = task_feature % train_X.shape[-1]
        task = _read_tasks(train_X[:, place], None)
        X = torch.cat([train_X[:, :place], train_X[:, place + 1 :]], dim=-1)
        Y = train_Y.new_full((len(X), int(task.max()) + 1), torch.nan)
        Y[torch.arange(len(X)), task] = train_Y.squeeze(-1)
        result = fit(X, Y, outputs=outputs, **options)
        return cls(result.gp, result.noise_variance, task_feature=task_feature, output_task=output_task)

    @property
    def num_outputs(self) -> int:
        """One: the value of the task that is looked at."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes of the model; those of fantasies come first."""
        return self.gp.batch_shape

    def posterior(
        self,
        X: Tensor,
        output_indices: Sequence[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | Callable[..., Any] | None = None,
    ) -> Any:
        """Predict each input's task.

        Args:
            X: Inputs `(*b, q, d + 1)`, or `(*b, q, d)` for `output_task`.
            output_indices: For BoTorch, which passes it; there is one output.
            observation_noise: Whether to add the noise of observations; a tensor `(*b, q, 1)` gives its variances.
            posterior_transform: Applied last.
        """
        rows = self._rows(X)
        prediction = Prediction(self.gp.row_gp.process, rows)
        mean, covariance = prediction.mean, prediction.covariance
        batch = broadcast_shapes(mean.shape[:-1], covariance.shape[:-2])
        if observation_noise is not False:
            noise = self._noise(rows) if observation_noise is True else observation_noise.squeeze(-1)
            covariance = covariance + torch.diag_embed(noise.expand(*batch, mean.shape[-1]))
        mean, covariance = mean.expand(*batch, mean.shape[-1]), covariance.expand(*batch, *covariance.shape[-2:])
        posterior = GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(covariance)))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def condition_on_observations(  # type: ignore[override] # takes no arguments that it would not read
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, *, propagate_grads: bool = True
    ) -> "OnlineMultiTaskGP":
        """Condition exactly on outcomes.

        Args:
            X: Inputs, as for `posterior`.
            Y: Outcomes `(*f, *b, n, 1)`; leading axes that inputs lack are fantasies.
            noise: Noise variances `(*b, n, 1)`, instead of the model's.
            propagate_grads: For BoTorch, which passes it; gradients always reach inputs and outcomes.
        """
        rows = self._rows(X)
        if Y.shape[-1:] != (1,):
            raise ShapeError(f"Y must have a last axis of one outcome, but has shape {tuple(Y.shape)}.")
        variances = self._noise(rows) if noise is None else noise.squeeze(-1)
        conditioned = self.gp.row_gp.condition(rows, Y.squeeze(-1), noise_variance=variances)
        return self._of(ConditionedMultiOutputGP(conditioned, self.num_tasks))

    def fantasize(
        self,
        X: Tensor,
        sampler: MCSampler,
        observation_noise: Tensor | None = None,
        *,
        propagate_grads: bool = True,
    ) -> "OnlineMultiTaskGP":
        """Condition on outcomes that are drawn from the posterior, with noise.

        Args:
            X: Inputs, as for `posterior`.
            sampler: Sampler of BoTorch.
            observation_noise: Variances `(*b, n, 1)` of the noise, instead of the model's.
            propagate_grads: For BoTorch, which passes it.
        """
        drawn = sampler(self.posterior(X, observation_noise=True if observation_noise is None else observation_noise))
        return self.condition_on_observations(X, drawn, noise=observation_noise)

    def absorb(self, X: Tensor, Y: Tensor, **options: Any) -> "OnlineMultiTaskGP":
        """Learn from outcomes `(n, 1)` in constant size; options of `SparseGP.absorb`."""
        rows = self._rows(X)
        absorbed, _ = check_sparse(self.gp).row_gp.absorb(
            rows, Y.squeeze(-1), noise_variance=self._noise(rows), **options
        )
        return self._of(MultiOutputGP(absorbed))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads."""
        save(self, path)

    def _of(self, gp: MultiOutputGP | ConditionedMultiOutputGP) -> "OnlineMultiTaskGP":
        return OnlineMultiTaskGP(gp, self.noise_variance, task_feature=self.task_feature, output_task=self.output_task)

    def _noise(self, rows: Tensor) -> Tensor:
        return self.noise_variance.to(rows)[rows[..., -1].detach().long()]

    def _rows(self, X: Tensor) -> Tensor:
        """Inputs with the column of the task last."""
        width = self.gp.row_gp.process.reference.shape[-1]
        if X.shape[-1] == width - 1:
            return torch.cat([X, X.new_full((*X.shape[:-1], 1), float(self.output_task))], dim=-1)
        if X.shape[-1] != width:
            raise ShapeError(
                f"X must have {width} columns, one of them for the task, or {width - 1} without it, but has shape "
                f"{tuple(X.shape)}."
            )
        place = self.task_feature
        tasks = _read_tasks(X[..., place], self.num_tasks).to(X)
        return torch.cat([X[..., :place], X[..., place + 1 :], tasks.unsqueeze(-1)], dim=-1)


def _read_tasks(values: Tensor, num_tasks: int | None) -> Tensor:
    """Whole numbers from zero."""
    tasks = values.detach().round().long()
    is_good = (
        (values.detach() == tasks) & (tasks >= 0) & (tasks < (tasks.max() + 1 if num_tasks is None else num_tasks))
    )
    if not bool(is_good.all()):
        most = "on" if num_tasks is None else f"to {num_tasks - 1}"
        raise ValueRangeError(
            f"The column of the task must hold whole numbers from 0 {most}, but holds "
            f"{float(values.detach()[~is_good].reshape(-1)[0]):g}."
        )
    return tasks


def _rebuild(gp: Any, noise_variance: Tensor, task_feature: int, output_task: int) -> OnlineMultiTaskGP:
    """A model from its parts."""
    return OnlineMultiTaskGP(gp, noise_variance, task_feature=task_feature, output_task=output_task)


register(
    OnlineMultiTaskGP,
    to_fields=lambda model: {
        "gp": model.gp,
        "noise_variance": model.noise_variance,
        "task_feature": model.task_feature,
        "output_task": model.output_task,
    },
    from_fields=_rebuild,
)
