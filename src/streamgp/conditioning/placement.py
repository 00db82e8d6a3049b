"""Placement of a belief while it absorbs observations: the inducing points that a user asked for."""

from torch import Tensor

from streamgp.checks import ArrayLike, check_choice, check_count, check_float, check_inputs, check_positive
from streamgp.conditioning.exchange import exchange, is_single
from streamgp.conditioning.nystrom import NystromPredictive, predict_nystrom
from streamgp.conditioning.observation import Observation
from streamgp.conditioning.selection import choose_inducing_points
from streamgp.conditioning.transport import TransportInfo, transport
from streamgp.errors import OptionError, ShapeError
from streamgp.evidence import Evidence
from streamgp.gp import Prior, SparseProcess

__all__ = ["check_inducing_points", "place"]


def check_inducing_points(points: object, name: str, *, like: Tensor | None = None) -> Tensor:
    """Return points as a tensor with at least one row and one column.

    Args:
        points: What the user passed.
        name: What an error calls it.
        like: Gives numbers without a dtype theirs.
    """
    read = check_float(points, name, like=like)
    if read.dim() < 2 or 0 in read.shape[-2:]:
        raise ShapeError(
            f"{name} must have shape (..., m, d) with at least one point, but has shape "
            f"{tuple(read.shape)}. Pass one row for each inducing point."
        )
    return read


def place(
    process: SparseProcess,
    observation: Observation,
    inducing: str | ArrayLike,
    *,
    num_inducing: int | None,
    prior: Prior | None,
    retention: float,
) -> tuple[SparseProcess, NystromPredictive, TransportInfo]:
    """Bring a belief to where it can absorb observations; the arguments are those of `SparseGP.absorb`.

    Args:
        process: The belief before the observations.
        observation: The observations, with the leading axes of the belief.
        inducing: `"pivoted"`, `"keep"`, or points.
        num_inducing: How many inducing points to choose; as many as before if None.
        prior: A changed prior, under which the belief is carried on.
        retention: How much more old inducing points count.

    Returns:
        The belief at its new inducing points, what it predicts of the observations, and diagnostics of its way there.
    """
    if not isinstance(inducing, str):
        points: Tensor | None = _given_points(inducing, observation.inputs, process.inducing_points)
    else:
        check_positive(retention, "retention")
        size = _read_size(process, num_inducing)
        is_asked = check_choice(inducing, ("pivoted", "keep"), "inducing") == "pivoted"
        points = None
        if is_asked and observation.inputs.shape[-2] and process.inducing.is_movable:
            if prior is None and size >= process.num_inducing and is_single(process, observation):
                return exchange(process, observation, num_inducing=size, retention=retention)
            points = choose_inducing_points(
                process, observation, num_inducing=size, retention=retention, prior=prior or process.prior
            )
    if points is None and prior is None:
        carried = TransportInfo(0, process.whitened_mean.new_zeros(process.batch_shape), 0)
    else:
        process, carried = transport(
            process, process.inducing_points if points is None else points, prior or process.prior
        )
    return process, predict_nystrom(process, observation), carried


def _given_points(inducing: ArrayLike, X: Tensor | Evidence, like: Tensor) -> Tensor:
    points = check_inducing_points(inducing, "inducing", like=like)
    points = check_inputs(points, num_dims=like.shape[-1], like=like, name="inducing").detach()
    return points.expand(*X.shape[:-2], *points.shape[-2:])


def _read_size(process: SparseProcess, num_inducing: int | None) -> int:
    if num_inducing is None:
        return process.num_inducing
    if not process.inducing.is_movable:
        raise OptionError(
            f"num_inducing={num_inducing} was asked for, but the belief is about the weights of "
            f"{process.num_inducing} features. Leave it out."
        )
    return check_count(num_inducing, "num_inducing")
