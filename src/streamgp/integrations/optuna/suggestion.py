"""One suggestion in a space some of whose parameters are discrete."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import torch
from botorch.exceptions.warnings import OptimizationWarning
from botorch.generation.gen import gen_candidates_scipy
from jaxtyping import Float
from torch import Tensor

from streamgp.integrations.optuna.space import SnapInputs, Space
from streamgp.models import OnlineGP
from streamgp.optimizers.acquisitions import improvement_function, propose
from streamgp.optimizers.decision import Decision, refitted
from streamgp.optimizers.design import apart, derived_seed, sobol_points
from streamgp.optimizers.lookahead import knowledge_gradient_on
from streamgp.optimizers.settings import Search, Settings
from streamgp.optimizers.state import State
from streamgp.threads import few_threads

__all__ = ["suggest_point"]

# Most changes of one discrete parameter after the gradient search.
_MOST_MOVES = 8
# Finite spaces of so many points are not searched, but listed.
_MOST_LISTED = 512
# Further points that knowledge gradient may recommend, beside the known ones.
_NUM_RECOMMENDED = 128

Score = Callable[[Tensor], Tensor]


def suggest_point(state: State, space: Space, settings: Settings, *, seed: int) -> Float[Tensor, " d"]:
    """Choose the valid point to evaluate next.

    The model sees only valid points: its inputs are snapped, so that acquisition functions are constant where that does
    not change the values. Gradients move the continuous parameters, and starts of the search differ in the others.
    Then each other value of each discrete parameter is tried in turn, as long as one is better. All points of a small
    finite space are tried at once.

    Args:
        state: What is known.
        space: The search space.
        settings: Of an optimizer on the unit cube of the space.
        seed: Of everything random.
    """
    decision = Decision.make(refitted(state, settings), settings)
    name, search = settings.acquisition, settings.search
    if space.is_continuous:
        point = propose(name, decision, 1, search=search, seed=seed).squeeze(0)
    else:
        decision = _snapped(decision, space)
        score, polish = _searches(name, decision, search, seed=seed)
        if space.num_points <= _MOST_LISTED:
            listed = space.all_points()
            point = listed[score(listed).argmax()]
        else:
            start = propose(name, decision, 1, search=search, seed=seed)
            point = _move(space.snap(start).squeeze(0), space, score, polish)
    taken = torch.cat([state.pending, state.failures])
    return space.snap(apart(point.unsqueeze(0), taken, seed=derived_seed(seed, 1))).squeeze(0)


def _snapped(decision: Decision, space: Space) -> Decision:
    """The decision with a model that sees only valid points, and each known point once, however often it was tried."""
    model = OnlineGP(decision.model.gps, decision.model.likelihoods, input_transform=SnapInputs(space))
    return replace(decision, model=model, baseline=torch.unique(decision.baseline, dim=0))


def _searches(name: str, decision: Decision, search: Search, *, seed: int) -> tuple[Score, Callable[[Tensor], Tensor]]:
    """How points `(k, d)` are valued, and how the continuous parameters of one are improved."""
    if name == "qkg":
        drawn = sobol_points(_NUM_RECOMMENDED, decision.num_dims, seed=derived_seed(seed, 302))
        W = torch.cat([decision.baseline, drawn])

        def knowledge_gradient(X: Tensor) -> Tensor:
            value, _ = knowledge_gradient_on(
                decision, X.unsqueeze(-2), W, num_fantasies=search.num_fantasies, seed=seed
            )
            return value

        return knowledge_gradient, lambda point: point
    function = improvement_function(name, decision, search, seed)

    def improvement(X: Tensor) -> Tensor:
        with torch.no_grad():
            return function(X.unsqueeze(-2))

    def polished(point: Tensor) -> Tensor:
        with few_threads(), warnings.catch_warnings():
            # A line search that finds nothing better leaves the point where it is.
            warnings.simplefilter("ignore", OptimizationWarning)
            X, _ = gen_candidates_scipy(
                point.reshape(1, 1, -1), function, 0.0, 1.0, options={"maxiter": search.max_iterations}
            )
        return X.reshape(-1)

    return improvement, polished


def _move(
    point: Float[Tensor, " d"], space: Space, score: Score, polish: Callable[[Tensor], Tensor]
) -> Float[Tensor, " d"]:
    """Change one discrete parameter at a time while that is better, and the continuous ones after each change."""
    for _ in range(_MOST_MOVES):
        tried = torch.cat([point.unsqueeze(0), space.neighbors(point)])
        best = int(score(tried).argmax())
        if best == 0:
            break
        point = space.snap(polish(tried[best]))
    return point
