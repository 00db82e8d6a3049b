"""One in, one out: a single new input against the weakest inducing point."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.nystrom import NystromPredictive, predict_nystrom
from streamgp.conditioning.observation import Observation
from streamgp.conditioning.selection import LEAST_WEIGHT, input_precision, site_information
from streamgp.conditioning.transport import TransportInfo, transport
from streamgp.gp import InducingFactor, SparseProcess
from streamgp.linalg import solve_lower, solve_lower_transpose

__all__ = ["exchange", "is_single"]

# The share of its prior variance that the inducing points must leave of an input before it can become one of them.
# Below, it is a copy: what would be gained is of the order of the jitter, ten times which is asked for as well.
_COPY = {torch.float64: 1e-7, torch.float32: 1e-4}


def is_single(process: SparseProcess, observation: Observation) -> bool:
    """Whether there is one new input for one GP, the case that `exchange` is for."""
    X = observation.inputs
    return X.shape[-2] == 1 and X.dim() == 2 and observation.projection is None and not process.batch_shape


def exchange(
    process: SparseProcess, observation: Observation, *, num_inducing: int, retention: float = 1.0
) -> tuple[SparseProcess, NystromPredictive, TransportInfo]:
    r"""Let a single new input take the place of the weakest inducing point, or join them while there is room.

    Of the $m + 1$ points together, one has to go: that whose prior variance given all others, weighted as in
    `choose_inducing_points`, is least. If it is $x$, all stay. An input that the inducing points explain to rounding
    never enters.

    Deciding costs $O(m^2)$ where the information at the inducing points is carried along, as it is until they move.

    Args:
        process: Belief before the observation; not modified.
        observation: A single one, by `is_single`.
        num_inducing: How many inducing points there may be; at least as many as there are.
        retention: What the weights of old points are multiplied with.

    Returns:
        The belief at the inducing points as they are then, what it says of the observed value, and diagnostics.
    """
    seen = predict_nystrom(process, observation)
    nothing = TransportInfo(0, seen.slack.new_zeros(()), 0)
    slack, variance = float(seen.slack), float(process.prior.variance(observation.inputs))
    if slack <= max(_COPY[seen.slack.dtype] * variance, 10.0 * float(process.total_jitter)):
        return process, seen, nothing
    if num_inducing > process.inducing_points.shape[-2]:
        moved, carried = _append(process, observation.inputs)
        return moved, predict_nystrom(moved, observation), carried
    process = process.with_belief(process.whitened_mean, process.whitened_root, site_information(process))
    weights = solve_lower_transpose(process.factor, seen.features)
    precision = float(input_precision(observation, seen, process.prior))
    weakest = _weakest(process, seen.slack, weights.squeeze(-1), precision=precision, retention=retention)
    if weakest is None:
        return process, seen._replace(weights=weights), nothing
    moved, carried = _swap(process, observation.inputs, weakest)
    return moved, predict_nystrom(moved, observation), carried


def _weakest(
    process: SparseProcess,
    slack: Float[Tensor, "1"],
    weights: Float[Tensor, " m"],
    *,
    precision: float,
    retention: float,
) -> int | None:
    """The inducing point that the others and the input explain best, if they explain the input less well."""
    assert process.information is not None
    alone = process.inducing_factor.leave_one_out
    weight = retention * (process.information.clamp_min(0.0) / precision).sqrt() + LEAST_WEIGHT
    # For each point, the prior variance of the input without it. That of the point given the others and the input is
    # to that of the point given the others as the slack is to this.
    without = torch.addcmul(slack, weights.square(), alone)
    ratio, index = (weight * alone / without).min(-1)
    return int(index) if float(ratio) < 1.0 else None


def _append(process: SparseProcess, x: Float[Tensor, "1 d"]) -> tuple[SparseProcess, TransportInfo]:
    """Add an inducing point; the belief about it is what the others say, so nothing is lost."""
    Z, R = torch.cat([process.inducing_points, x]), process.whitened_root
    grown = SparseProcess.from_prior(process.prior, Z, jitter=process.jitter)
    if not (process.inducing_factor.is_as_stated and grown.inducing_factor.is_as_stated):
        return transport(process, Z, process.prior)
    mean = torch.cat([process.whitened_mean, R.new_zeros(1)])
    return grown.with_belief(mean, torch.block_diag(R, R.new_ones(1, 1))), TransportInfo(0, R.new_zeros(()), 1)


def _swap(process: SparseProcess, x: Float[Tensor, "1 d"], index: int) -> tuple[SparseProcess, TransportInfo]:
    """Replace an inducing point; those that stay keep their order."""
    stays = [i for i in range(process.inducing_points.shape[-2]) if i != index]
    Z = torch.cat([process.inducing_points[stays], x])
    before_data = SparseProcess.from_prior(process.prior, Z, jitter=process.jitter)
    if not (process.inducing_factor.is_as_stated and before_data.inducing_factor.is_as_stated):
        return transport(process, Z, process.prior)
    mean, root, unexplained = _carry(process, before_data.inducing_factor, x, index)
    lost = site_information(process)[index] * unexplained
    return before_data.with_belief(mean, root), TransportInfo(0, lost, 1)


def _carry(
    process: SparseProcess, new: InducingFactor, x: Float[Tensor, "1 d"], index: int
) -> tuple[Float[Tensor, " m"], Float[Tensor, "m m"], Float[Tensor, ""]]:
    r"""The belief with $x$ instead of inducing point $i$, equal to `transport` at a fraction of its cost.

    Add $x$, which loses nothing, and let $n$ be what the new points cannot express of $u_i$, scaled to unit prior
    variance. The carried site is the old one at $n = 0$. As the precision of a conditional Gaussian is a block of the
    joint one, the carried belief is the old one given $n = 0$: a step of rank one, with nothing inverted.

    Returns:
        Whitened mean and root, and the prior variance of $u_i$ given the new points.
    """
    old, dtype, Z = process.inducing_factor, process.whitened_mean.dtype, process.inducing_points
    m, R = process.whitened_mean.double(), process.whitened_root.double()
    phi = solve_lower(old.double_factor, process.prior.covariance(Z, x).double()).squeeze(-1)
    own = (process.prior.variance(x).double().squeeze(-1) + process.jitter - phi @ phi).sqrt()
    # From old whitened coordinates, and one more for what is new of x, to values at the new points, to new coordinates.
    values = torch.block_diag(torch.cat([old.double_factor[:index], old.double_factor[index + 1 :]]), own)
    values[-1, :-1] = phi
    T = solve_lower(new.double_factor, values)
    direction = old.whitening[:, index]
    n = torch.cat([direction, -(phi @ direction / own).unsqueeze(-1)])
    scale = n @ n
    n = n / scale.sqrt()
    # Before n is known, the new coordinates have covariance M M', and M r with n, whose variance is r'r.
    M, r = torch.cat([T[:, :-1] @ R, T[:, -1:]], dim=-1), torch.cat([n[:-1] @ R, n[-1:]])
    mean = T[:, :-1] @ m - (M @ r) * ((n[:-1] @ m) / (r @ r))
    return mean.to(dtype), _without(M, r).to(dtype), scale.reciprocal().to(dtype)


def _without(M: Float[Tensor, "m k"], r: Float[Tensor, " k"]) -> Float[Tensor, "m j"]:
    r"""A root of $M (I - r r^\top / r^\top r) M^\top$ with one column less, by a Householder reflection."""
    h = r.clone()
    h[-1] += torch.copysign(r.norm(), r[-1])
    return (M - torch.outer(M @ h, h * (2.0 / (h @ h))))[:, :-1].contiguous()
