r"""Importance of each parameter: Sobol indices of what a model predicts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import AbstractSpace
from streamgp.display import html_rows, new_axes
from streamgp.loops.effects import check_free
from streamgp.loops.prediction import predict_objective
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState
from streamgp.seeds import sobol_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Importance", "find_importance", "sobol_indices"]

Function = Callable[[Float[Tensor, "n d"]], Float[Tensor, " n"]]


@final
@dataclass(frozen=True, eq=False)
class Importance:
    r"""Shares of the variance of the expected response, over values of all parameters that are equally likely.

    Attributes:
        names: Of the parameters.
        first_order: Share that each explains by itself, $\operatorname{var}(E[f | x_i]) / \operatorname{var} f$.
        total: Share that is lost without it, what it does together with others included,
            $E[\operatorname{var}(f | x_{-i})] / \operatorname{var} f$.
    """

    names: tuple[str, ...]
    first_order: Float[Tensor, " k"]
    total: Float[Tensor, " k"]

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw both as bars, the most important on top.

        Args:
            axes: Where to draw; a new figure by default.
        """
        axes, order = new_axes(axes), self.total.argsort()
        position = list(range(len(order)))
        axes.barh(position, self.total[order].tolist(), color="lightgray", label="with others")
        axes.barh(position, self.first_order[order].tolist(), height=0.5, color="tab:blue", label="by itself")
        axes.set_yticks(position, [self.names[i] for i in order.tolist()])
        axes.set_xlabel("share of the variance")
        axes.legend()
        return axes

    def __repr__(self) -> str:
        order = self.total.argsort(descending=True).tolist()
        parts = [f"{self.names[i]} {float(self.first_order[i]):.2f} to {float(self.total[i]):.2f}" for i in order]
        return f"Importance({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = zip(self.names, self.first_order.tolist(), self.total.tolist(), strict=True)
        return html_rows("Importance", [{"parameter": n, "by itself": s, "with others": t} for n, s, t in rows])


def find_importance(state: LoopState, settings: LoopSettings, *, output: int, num_points: int) -> Importance:
    """Indices of the predicted mean of an outcome.

    Args:
        state: With a model.
        settings: Of the loop.
        output: Which outcome.
        num_points: Size of the design.
    """
    space = settings.space
    parts = check_free(space, "Importance")

    def mean(points: Tensor) -> Tensor:
        return predict_objective(state, settings, space.inputs(points), output=output).mean

    first_order, total = sobol_indices(mean, parts, num_dims=_num_columns(space), num_points=num_points)
    return Importance(tuple(parts), first_order, total)


def sobol_indices(
    function: Function, parts: Mapping[str, slice], *, num_dims: int, num_points: int, seed: int = 0
) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
    r"""First-order and total indices of a function of the unit cube, by a quasi-random design.

    Points $A$ and $B$ are independent, and $A_B^{(i)}$ is $A$ with the columns of part $i$ from $B$. With means over
    the design,
    $S_i = \overline{f(B) (f(A_B^{(i)}) - f(A))} / V$ and $T_i = \overline{(f(A) - f(A_B^{(i)}))^2} / (2 V)$.

    Args:
        function: Of points `(n, d)`.
        parts: Columns that belong together, by name.
        num_dims: Dimension of the cube.
        num_points: Size of the design; the function is evaluated at `num_points` times the number of parts plus two.
        seed: Of the design.

    References:
        Saltelli et al. (2010), Variance based sensitivity analysis of model output; Jansen (1999), Analysis of variance
        designs for model output.
    """
    A, B = sobol_points(num_points, 2 * num_dims, seed=seed).chunk(2, dim=-1)
    mixed = []
    for columns in parts.values():
        one = A.clone()
        one[:, columns] = B[:, columns]
        mixed.append(one)
    values = function(torch.cat([A, B, *mixed])).reshape(-1, num_points)
    values = values - values[:2].mean()
    f_A, f_B, f_mixed = values[0], values[1], values[2:]
    variance = values[:2].var(correction=0)
    if not float(variance) > 1e-24 * float(values[:2].abs().max().clamp_min(1e-300)) ** 2:
        return torch.zeros(len(parts), dtype=values.dtype), torch.zeros(len(parts), dtype=values.dtype)
    first_order = (f_B * (f_mixed - f_A)).mean(-1) / variance
    total = 0.5 * (f_A - f_mixed).square().mean(-1) / variance
    # As the shares themselves, of which the total has the smaller error.
    return torch.minimum(first_order.clamp_min(0.0), total), total


def _num_columns(space: AbstractSpace) -> int:
    return space.no_points().shape[-1]
