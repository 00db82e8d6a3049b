"""Choosing inducing points anew among the old ones and new inputs."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.conditioning.nystrom import NystromPredictive, predict_nystrom
from streamgp.conditioning.observation import Observation
from streamgp.evidence import Evidence
from streamgp.gp import Prior, SparseProcess
from streamgp.linalg import pivoted_cholesky
from streamgp.shapes import broadcast_shapes

__all__ = ["LEAST_WEIGHT", "choose_inducing_points", "derive_information", "input_precision", "site_information"]

# The weight of an old point about which nothing is known, relative to that of a new input: still a candidate.
LEAST_WEIGHT = 1e-6
# An observation of no curvature is still a candidate, behind all others.
_LEAST_CURVATURE = 1e-6
# Up to so many single observations are faster one after the other, in numbers.
_FEW = 8


def choose_inducing_points(
    process: SparseProcess, observation: Observation, *, num_inducing: int, prior: Prior, retention: float = 1.0
) -> Float[Tensor, "*b m d"] | None:
    r"""Choose inducing points among the old ones and new inputs by pivoted Cholesky of the weighted kernel.

    New inputs count with the precision of their observations. Old points count with the geometric mean of that
    precision and of the information the belief holds at them, the diagonal of the site $\Lambda$. By the information
    alone, points that know much would never give way, and new regions stay uncovered while data comes in small
    batches; by coverage alone, points are exchanged that need not be, and each exchange loses some of the belief.

    For rows of evidence, what counts is what points leave open of the rows, and where a row is least explained the
    point is one of its atoms. Old points that stay keep their order.

    Args:
        process: Belief before the observations.
        observation: The new inputs or rows, and how they are observed.
        num_inducing: How many to choose.
        prior: Whose kernel counts.
        retention: What the weights of old points are multiplied with.

    Returns:
        The chosen points, or None if the old ones are chosen again.
    """
    Z, X = process.inducing_points, observation.inputs
    batch = broadcast_shapes(Z.shape[:-2], X.shape[:-2], prior.batch_shape)
    num_old = Z.shape[-2]
    seen = None if observation.likelihood is None else predict_nystrom(process, observation)
    precision = input_precision(observation, seen, prior).expand(*batch, X.shape[-2])
    typical = precision.mean(-1, keepdim=True)
    old_precision = retention * (site_information(process).clamp_min(0.0) * typical).sqrt() + LEAST_WEIGHT * typical
    old_precision, old = old_precision.expand(*batch, num_old), Z.expand(*batch, *Z.shape[-2:])
    if isinstance(X, Evidence):
        points, row_of = row_points(X.expand(batch), prior)
        candidates = torch.cat([old, points], dim=-2)
        pivots = _pivot_rows(prior, candidates, X.expand(batch), row_of, num_inducing, (old_precision, precision))
    else:
        candidates = torch.cat([old, X.expand(*batch, *X.shape[-2:])], dim=-2)
        pivots = pivoted_cholesky(
            prior.covariance,
            candidates,
            num_inducing,
            variance=prior.variance(candidates).expand(candidates.shape[:-1]),
            weights=torch.cat([old_precision, precision], dim=-1),
        ).pivots
    order = pivots.sort(-1).values
    if order.shape[-1] == num_old and bool((order == torch.arange(num_old, device=order.device)).all()):
        return None
    return candidates.gather(-2, order.unsqueeze(-1).expand(*order.shape, candidates.shape[-1]))


def row_points(rows: Evidence, prior: Prior) -> tuple[Float[Tensor, "*b c d"], Int[Tensor, " c"]]:
    """Inputs whose values tell of rows of evidence, and the row of each.

    These are the inputs of its values. For a slope they are its input and those as far on each side, along its
    direction, as the function takes to change by its own deviation: the value at the input alone tells nothing of it.
    """
    x, v, k = rows.points, rows.directions, rows.num_rows
    row_of = torch.arange(k, device=x.device) if rows.row_of is None else rows.row_of
    if v is None:
        return x, row_of
    is_slope = (v != 0).any(-1)
    is_slope = is_slope.reshape(-1, is_slope.shape[-1]).any(0)
    x, v = x[..., is_slope, :], v[..., is_slope, :]
    atoms = torch.cat([x, v, torch.zeros_like(x[..., :1])], dim=-1)
    slopes = Evidence(atoms, rows.num_dims, None, None, ((x.shape[-2],),))
    length = (prior.variance(x) / prior.variance(slopes)).sqrt().unsqueeze(-1) * v
    return torch.cat([rows.points, x + length, x - length], dim=-2), torch.cat([row_of, *[row_of[is_slope]] * 2])


def _pivot_rows(
    prior: Prior,
    candidates: Float[Tensor, "*b n d"],
    rows: Evidence,
    row_of: Int[Tensor, " c"],
    num_pivots: int,
    weights: tuple[Float[Tensor, "*b m"], Float[Tensor, "*b k"]],
) -> Int[Tensor, "*b p"]:
    """Choose points one after the other, each for the old point or row of evidence of which most is left open.

    Args:
        prior: The prior.
        candidates: Old points, and points of rows.
        rows: The rows.
        row_of: Which row each point after the old ones is for.
        num_pivots: How many to choose.
        weights: How much old points and rows count.
    """
    old_weights, row_weights = weights
    num_old, n = old_weights.shape[-1], candidates.shape[-2]
    batch = candidates.shape[:-2]
    num_pivots = min(num_pivots, n)
    open_points = prior.variance(candidates).expand(*batch, n).clone()
    open_rows = prior.variance(rows).expand(*batch, rows.num_rows).clone()
    floor = 1e-12 if candidates.dtype == torch.float64 else 1e-6
    least_point = floor * open_points.amax(-1, keepdim=True)
    least = floor * torch.cat([old_weights * open_points[..., :num_old], row_weights * open_rows], -1).amax(
        -1, keepdim=True
    )
    is_live = torch.ones_like(open_rows, dtype=torch.bool)
    factor, row_factor = (
        candidates.new_zeros(*batch, num_pivots, n),
        open_rows.new_zeros(*batch, num_pivots, rows.num_rows),
    )
    pivots, done = torch.zeros(*batch, num_pivots, dtype=torch.long, device=candidates.device), 0
    while done < num_pivots:
        score = torch.cat([old_weights * open_points[..., :num_old], row_weights * open_rows * is_live], dim=-1)
        largest, best = score.max(-1, keepdim=True)
        is_alive = largest > least
        if not bool(is_alive.any()):
            break
        # Where a row is least explained, take the one of its points of which most is left open.
        of_row = torch.where(row_of == best - num_old, open_points[..., num_old:], -1.0)
        most, place = of_row.max(-1, keepdim=True)
        is_row = best >= num_old
        is_spent = is_row & (most <= least_point)
        if bool((is_alive & is_spent).any()):  # its points are all taken, and what they leave stays open
            is_live = is_live & ~(
                (is_alive & is_spent) & (torch.arange(rows.num_rows, device=best.device) == best - num_old)
            )
            continue
        pivot = torch.where(is_row, place + num_old, best)
        point = candidates.gather(-2, pivot.unsqueeze(-1).expand(*batch, 1, candidates.shape[-1]))
        at = factor[..., :done, :].gather(-1, pivot.unsqueeze(-2).expand(*batch, done, 1)).mT
        scale = torch.where(is_alive, open_points.gather(-1, pivot).rsqrt(), 0.0)
        column = (prior.covariance(point, candidates) - at @ factor[..., :done, :]).squeeze(-2) * scale
        row_column = (prior.covariance(point, rows) - at @ row_factor[..., :done, :]).squeeze(-2) * scale
        factor[..., done, :], row_factor[..., done, :] = column, row_column
        open_points = (open_points - column.square()).scatter(-1, pivot, 0.0).clamp_min(0.0)
        open_rows = (open_rows - row_column.square()).clamp_min(0.0)
        pivots[..., done : done + 1] = torch.where(is_alive, pivot, pivots[..., :1])
        done += 1
    return pivots[..., :done]


def site_information(process: SparseProcess) -> Float[Tensor, "*b m"]:
    r"""The diagonal of the site $\Lambda = S^{-1} - K^{-1}$ at the inducing points; may be negative.

    Taken from where it was carried along, or derived from the belief in $O(m^3)$.
    """
    if process.information is not None:
        return process.information
    return derive_information(process.whitened_root, process.inducing_factor.whitening)


def derive_information(
    whitened_root: Float[Tensor, "*b m m"], whitening: Float[Tensor, "*b m m"]
) -> Float[Tensor, "*b m"]:
    """Derive the diagonal of the site of a belief from its root and the inverse factor of its points."""
    solved, _ = torch.linalg.solve_ex(whitened_root.double(), whitening)
    information = solved.square().sum(-2) - whitening.square().sum(-2)
    # A belief without spread is infinitely sure; as large as the dtype holds with room for products.
    most = torch.finfo(whitened_root.dtype).max ** 0.25
    return information.nan_to_num(nan=most, posinf=most).clamp_max(most).to(whitened_root.dtype)


def input_precision(observation: Observation, seen: NystromPredictive | None, prior: Prior) -> Float[Tensor, "*b n"]:
    """Find the precision of each observation before its site is known: the expected curvature under the belief.

    Args:
        observation: What was observed.
        seen: What is believed of it; not needed for Gaussian observations.
        prior: Whose variances tell how small a noise is.
    """
    X, y = observation.inputs, observation.targets
    if observation.noise is not None:
        return observation.noise.precisions(prior.variance(X))
    assert observation.likelihood is not None
    assert seen is not None
    likelihood = observation.likelihood
    is_few = X.shape[-2] == 1 and y.numel() <= _FEW
    if is_few and likelihood.num_latents == 1 and not likelihood.has_row_constants:
        moments = (each.reshape(-1).tolist() for each in (seen.mean, seen.variance(), y))
        numbers = [
            max(-likelihood.expected_derivatives_of_one(m, v, one)[1], _LEAST_CURVATURE)
            for m, v, one in zip(*moments, strict=True)
        ]
        return y.new_tensor(numbers).view(y.shape)
    _, curvature = likelihood.expected_derivatives(seen.mean, seen.variance(), y)
    return (-curvature).clamp_min(_LEAST_CURVATURE)
