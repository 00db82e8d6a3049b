"""One in, one out: a single new input against the weakest inducing point."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from streamgp.conditioning.nystrom import NystromPredictive, predict_nystrom
from streamgp.conditioning.observation import Observation
from streamgp.conditioning.selection import LEAST_WEIGHT, derive_information, input_precision, site_information
from streamgp.conditioning.transport import TransportInfo, transport
from streamgp.gp import InducingFactor, SparseProcess
from streamgp.linalg import apply, solve_lower, solve_lower_transpose, solve_vector

__all__ = ["exchange", "is_single"]

# The share of its prior variance that the inducing points must leave of an input before it can become one of them.
# Below, it is a copy: what would be gained is of the order of the jitter, ten times which is asked for as well.
_COPY = {torch.float64: 1e-7, torch.float32: 1e-4}


def is_single(process: SparseProcess, observation: Observation) -> bool:
    """Tell if there is one new input for each GP, the case that `exchange` is for."""
    X, Z = observation.inputs, process.inducing_points
    return isinstance(X, Tensor) and X.shape[-2] == 1 and X.shape[:-2] == Z.shape[:-2] == process.batch_shape


def exchange(
    process: SparseProcess, observation: Observation, *, num_inducing: int, retention: float = 1.0
) -> tuple[SparseProcess, NystromPredictive, TransportInfo]:
    r"""Let a single new input take the place of the weakest inducing point, or join them while there is room.

    Of the $m + 1$ points together, one has to go: that whose prior variance given all others, weighted as in
    `choose_inducing_points`, is least. If it is $x$, all stay. An input that the inducing points explain to rounding
    never enters. Members of a batch decide for themselves, but have equally many points: all of them grow, or none.

    Deciding costs $O(m^2)$ where the information at the inducing points is carried along, as it is until they move.

    Args:
        process: Belief before the observation; not modified.
        observation: A single one for each member of the batch, by `is_single`.
        num_inducing: How many inducing points there may be; at least as many as there are.
        retention: What the weights of old points are multiplied with.

    Returns:
        The belief at the inducing points as they are then, what it says of the observed value, and diagnostics.
    """
    x, seen = observation.inputs, predict_nystrom(process, observation)
    assert isinstance(x, Tensor)
    nothing = TransportInfo(0, seen.slack.new_zeros(process.batch_shape), 0)
    slacks = seen.slack.flatten().tolist()
    variances = process.prior.variance(x).expand_as(seen.slack).flatten().tolist()
    jitters = process.total_jitter.expand(process.batch_shape).flatten().tolist()
    is_new = [
        slack > max(_COPY[seen.slack.dtype] * variance, 10.0 * jitter)
        for slack, variance, jitter in zip(slacks, variances, jitters, strict=True)
    ]
    has_room = num_inducing > process.inducing_points.shape[-2]
    if not (all(is_new) if has_room else any(is_new)):
        return process, seen, nothing
    if has_room:
        moved, carried = _append(process, x)
        return moved, predict_nystrom(moved, observation), carried
    if process.information is None:
        process = process.with_belief(process.whitened_mean, process.whitened_root, site_information(process))
    weights = solve_lower_transpose(process.factor, seen.features)
    precision = input_precision(observation, seen, process.prior)
    ratio, weakest = _weakest(process, seen.slack, weights.squeeze(-1), precision=precision, retention=retention)
    is_swapped = [new and one < 1.0 for new, one in zip(is_new, ratio.flatten().tolist(), strict=True)]
    if not any(is_swapped):
        return process, seen._replace(weights=weights), nothing
    moved, carried = _swap(process, x, weakest, torch.tensor(is_swapped, device=ratio.device).view(ratio.shape))
    return moved, predict_nystrom(moved, observation), carried


def _weakest(
    process: SparseProcess,
    slack: Float[Tensor, "*b 1"],
    weights: Float[Tensor, "*b m"],
    *,
    precision: Float[Tensor, "*c 1"],
    retention: float,
) -> tuple[Float[Tensor, "*b"], Int[Tensor, "*b"]]:
    """The inducing point that the others and the input explain best, and how well compared with the input."""
    assert process.information is not None
    alone = process.inducing_factor.leave_one_out
    weight = retention * (process.information.clamp_min(0.0) / precision).sqrt() + LEAST_WEIGHT
    # For each point, the prior variance of the input without it. That of the point given the others and the input is
    # to that of the point given the others as the slack is to this.
    without = torch.addcmul(slack, weights.square(), alone)
    ratio, index = (weight * alone / without).min(-1)
    return ratio, index


def _append(process: SparseProcess, x: Float[Tensor, "*b 1 d"]) -> tuple[SparseProcess, TransportInfo]:
    """Add an inducing point; the belief about it is what the others say, so nothing is lost."""
    Z, R, m = torch.cat([process.inducing_points, x], dim=-2), process.whitened_root, process.whitened_mean
    grown = SparseProcess.from_prior(process.prior, Z, jitter=process.jitter)
    if not (process.inducing_factor.is_as_stated and grown.inducing_factor.is_as_stated):
        return transport(process, Z, process.prior)
    root = torch.nn.functional.pad(R, (0, 1, 0, 1))
    root[..., -1, -1] = 1.0
    mean = torch.nn.functional.pad(m, (0, 1))
    return grown.with_belief(mean, root), TransportInfo(0, R.new_zeros(m.shape[:-1]), m[..., 0].numel())


def _swap(
    process: SparseProcess, x: Float[Tensor, "*b 1 d"], index: Int[Tensor, "*b"], is_swapped: Bool[Tensor, "*b"]
) -> tuple[SparseProcess, TransportInfo]:
    """Replace an inducing point of some members of the batch; those that stay keep their order."""
    old, points = process.inducing_factor, process.inducing_points
    m, d = points.shape[-2:]
    moved = is_swapped.reshape(-1).nonzero().squeeze(-1)
    weakest = index.reshape(-1)[moved]
    order = torch.arange(m - 1, device=points.device)
    stays = order + (order >= weakest.unsqueeze(-1)).long()
    Z, new_x = points.reshape(-1, m, d).clone(), x.reshape(-1, 1, d)[moved]
    Z[moved] = torch.cat([Z[moved].gather(-2, stays.unsqueeze(-1).expand(-1, -1, d)), new_x], dim=-2)
    Z = Z.reshape(points.shape)
    if not old.is_as_stated:
        return transport(process, Z, process.prior)
    new = _factorize(process, Z, moved)
    if not new.is_as_stated:
        return transport(process, Z, process.prior)
    covariance = process.prior.covariance(points, x).expand(*points.shape[:-1], 1)
    variance = process.prior.variance(x).expand(x.shape[:-1])
    mean, root = process.whitened_mean.reshape(-1, m), process.whitened_root.reshape(-1, m, m)
    new_mean, new_root, unexplained = _carry(
        _Swap(
            old.double_factor.reshape(-1, m, m)[moved],
            old.whitening.reshape(-1, m, m)[moved],
            new.double_factor,
            covariance.reshape(-1, m)[moved].double(),
            variance.reshape(-1)[moved].double() + process.jitter,
            stays,
            weakest,
        ),
        mean[moved],
        root[moved],
    )
    information = site_information(process).reshape(-1, m)
    known = information[moved].gather(-1, weakest.unsqueeze(-1)).squeeze(-1)
    lost = mean.new_zeros(len(mean)).index_copy(0, moved, known * unexplained).reshape(is_swapped.shape)
    carried = SparseProcess(
        process.prior,
        Z,
        mean.index_copy(0, moved, new_mean).reshape(process.whitened_mean.shape),
        root.index_copy(0, moved, new_root).reshape(process.whitened_root.shape),
        process.jitter,
        information.index_copy(0, moved, derive_information(new_root, new.whitening)).reshape(points.shape[:-1]),
    )
    flat = torch.Size([len(mean)])
    carried.__dict__["inducing_factor"] = old.reshape(flat).with_members(moved, new).reshape(points.shape[:-2])
    return carried, TransportInfo(0, lost, len(moved))


def _factorize(process: SparseProcess, Z: Float[Tensor, "*b m d"], moved: Int[Tensor, " k"]) -> InducingFactor:
    """Factorize the points of the members that exchange one, the whitening included."""
    K = process.prior.covariance(Z, Z)
    if K.dim() == 2:  # to the bit what a process that is read from a file computes
        alone = InducingFactor.of(K, process.jitter)
        _ = alone.whitening
        return alone.reshape(torch.Size([1]))
    return InducingFactor.of(K.expand(*Z.shape[:-1], Z.shape[-2]).flatten(0, -3)[moved], process.jitter)


class _Swap(NamedTuple):
    """Members of a batch that exchange a point, one after the other, in double precision.

    Attributes:
        factor: Of the old points.
        whitening: Its inverse.
        new_factor: Of the new points.
        covariance: Of the old points with the new input.
        variance: Of the new input, with the jitter.
        stays: Which old points stay.
        leaves: Which one does not.
    """

    factor: Float[Tensor, "k m m"]
    whitening: Float[Tensor, "k m m"]
    new_factor: Float[Tensor, "k m m"]
    covariance: Float[Tensor, "k m"]
    variance: Float[Tensor, " k"]
    stays: Int[Tensor, "k n"]
    leaves: Int[Tensor, " k"]


def _carry(
    swap: _Swap, mean: Float[Tensor, "k m"], root: Float[Tensor, "k m m"]
) -> tuple[Float[Tensor, "k m"], Float[Tensor, "k m m"], Float[Tensor, " k"]]:
    r"""The belief with $x$ instead of inducing point $i$, equal to `transport` at a fraction of its cost.

    Add $x$, which loses nothing, and let $n$ be what the new points cannot express of $u_i$, scaled to unit prior
    variance. The carried site is the old one at $n = 0$. As the precision of a conditional Gaussian is a block of the
    joint one, the carried belief is the old one given $n = 0$: a step of rank one, with nothing inverted.

    Returns:
        Whitened mean and root, and the prior variance of $u_i$ given the new points.
    """
    m, R, L = mean.double(), root.double(), swap.factor
    phi = solve_vector(L, swap.covariance)
    own = (swap.variance - phi.square().sum(-1)).sqrt()
    # From old whitened coordinates, and one more for what is new of x, to values at the new points, to new coordinates.
    values = torch.nn.functional.pad(L.gather(-2, swap.stays.unsqueeze(-1).expand(-1, -1, L.shape[-1])), (0, 1, 0, 1))
    values[:, -1, :-1], values[:, -1, -1] = phi, own
    T = solve_lower(swap.new_factor, values)
    direction = swap.whitening.gather(-1, swap.leaves.reshape(-1, 1, 1).expand(-1, L.shape[-1], 1)).squeeze(-1)
    n = torch.cat([direction, -((phi * direction).sum(-1) / own).unsqueeze(-1)], dim=-1)
    scale = n.square().sum(-1)
    n = n / scale.sqrt().unsqueeze(-1)
    # Before n is known, the new coordinates have covariance M M', and M r with n, whose variance is r'r.
    M = torch.cat([T[..., :-1] @ R, T[..., -1:]], dim=-1)
    r = torch.cat([apply(R.mT, n[:, :-1]), n[:, -1:]], dim=-1)
    known = (n[:, :-1] * m).sum(-1) / r.square().sum(-1)
    carried = apply(T[..., :-1], m) - apply(M, r) * known.unsqueeze(-1)
    return carried.to(mean), _without(M, r).to(root), scale.reciprocal().to(mean)


def _without(M: Float[Tensor, "k m n"], r: Float[Tensor, "k n"]) -> Float[Tensor, "k m j"]:
    r"""A root of $M (I - r r^\top / r^\top r) M^\top$ with one column less, by a Householder reflection."""
    h = r.clone()
    h[:, -1] += torch.copysign(r.norm(dim=-1), r[:, -1])
    reflected = M - apply(M, h).unsqueeze(-1) * (h * (2.0 / h.square().sum(-1, keepdim=True))).unsqueeze(-2)
    return reflected[..., :-1].contiguous()
