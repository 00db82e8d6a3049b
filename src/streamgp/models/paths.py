"""Functions drawn from a model, for BoTorch's pathwise Thompson sampling."""

from typing import Any, final

import torch
from botorch.sampling.pathwise.paths import SamplePath
from botorch.sampling.pathwise.posterior_samplers import DrawMatheronPaths
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.errors import UnsupportedError
from streamgp.gp import SamplePaths
from streamgp.models.online_gp import OnlineGP

__all__ = ["OnlinePaths"]


@final
class OnlinePaths(SamplePath):
    """Sampled functions of all outputs, in the user's units.

    Attributes:
        model: The model they were drawn from.
        paths: Functions of each output.
        sample_shape: Leading axes of the functions.
    """

    def __init__(self, model: OnlineGP, paths: tuple[SamplePaths, ...], sample_shape: torch.Size) -> None:
        """Keep the functions."""
        super().__init__()
        self.model, self.paths, self.sample_shape = model, paths, sample_shape

    def set_ensemble_as_batch(self, ensemble_as_batch: bool) -> None:
        """Do nothing: the model is no ensemble."""

    def forward(self, x: Tensor, **kwargs: Any) -> Tensor:
        """Evaluate each function at its own inputs.

        Args:
            x: Inputs `(*b, *s, n, d)`, which broadcast with the sample shape; with an axis of one before `n` where the
                model has several outputs.
            **kwargs: What BoTorch passes for other paths; not needed here.

        Returns:
            Values `(*b, *s, n)`, or `(*b, *s, o, n)`.
        """
        is_single = self.model.num_outputs == 1
        inputs = self.model.transform_inputs(x if is_single else x.squeeze(-3))
        values = torch.stack([_evaluate(paths, inputs, self.sample_shape) for paths in self.paths], dim=-1)
        if "outcome_transform" in self.model._modules:
            values = self.model.outcome_transform.untransform(values, X=inputs)[0]
        return values.squeeze(-1) if is_single else values.mT


@DrawMatheronPaths.register(OnlineGP)  # type: ignore[untyped-decorator]
def _draw(model: OnlineGP, *, sample_shape: torch.Size, **kwargs: Any) -> OnlinePaths:
    paths = []
    for j, gp in enumerate(model.gps):
        if not isinstance(gp, SparseGP) or gp.process.batch_shape:
            raise UnsupportedError(
                f"Functions are drawn from sparse GPs without leading axes, but output {j} was conditioned or is a "
                "batch. Draw from the model before it was conditioned, absorb the observations, or sample the "
                "posterior at given inputs."
            )
        generator = torch.Generator(gp.inducing_points.device).manual_seed(int(torch.randint(2**31, ())))
        paths.append(gp.sample_paths(max(sample_shape.numel(), 1), generator=generator))
    return OnlinePaths(model, tuple(paths), sample_shape)


def _evaluate(paths: SamplePaths, inputs: Tensor, sample_shape: torch.Size) -> Tensor:
    """Values of one output, where inputs broadcast with the samples instead of meeting all of them."""
    features = paths.features(inputs)
    # (*s, g, 1): one column of weights for each function.
    feature_weights, update_weights = (
        weights.reshape(*sample_shape, weights.shape[-1], 1)
        for weights in (paths.feature_weights, paths.update_weights)
    )
    update = paths.inducing.crossed(inputs) @ update_weights
    return paths.prior.mean(inputs) + (features @ feature_weights + update).squeeze(-1)
