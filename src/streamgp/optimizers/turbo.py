"""The trust-region optimizer that users hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from torch import Tensor

from streamgp.acquisition import AbstractDrawingRule, AbstractRule, RegionRules, Search, TrustRegion
from streamgp.acquisition.rules.names import REGION_RULES, read_rule
from streamgp.acquisition.rules.trust_region_rule import RegionMemory
from streamgp.acquisition.trust_region import Region
from streamgp.checks import check_choice, check_count, check_seed
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops import AbstractLoop, Box, LoopSettings, Objective, SurrogateSettings, Training
from streamgp.loops.evaluation import BatchRuns
from streamgp.loops.plots import draw_region
from streamgp.loops.settings import read_refit
from streamgp.storage import register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TurboOptimizer", "read_region", "region_settings"]

_MODELS = ("sparse", "exact")
_SCALINGS = ("standardize", "rank")
# Points of the initial design of few dimensions; of more there is one for each.
_LEAST_INITIAL = 10


@final
class TurboOptimizer(BatchRuns, AbstractLoop):
    """Bayesian optimization in a trust region, for thousands of evaluations in large batches.

    With a few hundred evaluations `Optimizer` is better, in tens of dimensions, too.

    A box around the best point is searched by Thompson sampling from a sparse GP. It grows with success, shrinks with
    failure, and when it has become too small the search begins anew elsewhere: with a new initial design and without
    the data of earlier runs, of which only the best outcome is remembered.

    `ask` suggests points, `tell` takes their outcomes. Each call of `tell` is one step of the trust region, so outcomes
    of a batch are best told together. Failed evaluations are told as NaN: they count as evaluations without success,
    and the model does not see them. Suggestions are random draws, so asking again before telling does not repeat them.
    The same seed and the same calls give the same suggestions, also across `save` and `load`. A call that raises an
    error changes nothing, and threads may share an optimizer.

    ```python
    optimizer = sg.TurboOptimizer([(-5.0, 5.0)] * 20, maximize=False)
    points = optimizer.ask(20)
    optimizer.tell(points, (points**2).sum(-1))
    best = optimizer.run(lambda x: (x**2).sum(), 40, q=20, progress=False)  # or all of it by itself
    ```

    References:
        Eriksson, Pearce, Gardner, Turner, Poloczek (2019), Scalable global optimization via local Bayesian
        optimization.
    """

    def __init__(
        self,
        bounds: Tensor | Sequence[tuple[float, float]],
        *,
        maximize: bool = True,
        likelihood: str | AbstractLikelihood = "gaussian",
        model: str = "sparse",
        acquisition: str | AbstractRule = "thompson",
        objective: str = "elbo",
        num_inducing: int = 500,
        num_initial: int | None = None,
        rules: RegionRules | None = None,
        priors: str | None = "dim_scaled",
        scaling: str = "standardize",
        refit: str | int = "always",
        seed: int = 0,
    ) -> None:
        """Start without data.

        Args:
            bounds: Of the box that is searched: a tensor `(2, d)` with lower ends in the first row, as BoTorch has it,
                or a list of pairs `(lower, upper)`, one for each dimension.
            maximize: Whether large outcomes are wanted, or small ones.
            likelihood: Of the outcomes, as in `Optimizer`. The best outcome as observed is the center of the search.
            model: `"sparse"`, or `"exact"` for BoTorch's `SingleTaskGP`.
            acquisition: `"thompson"`, or `"lookahead_thompson"` for Thompson sampling with look-ahead; or
                `streamgp.acquisition.Thompson` or `LookaheadThompson` with their options, or a rule of your own that
                derives from `streamgp.acquisition.AbstractDrawingRule`.
            objective: For which the sparse model is fitted, `"elbo"` or `"pll"`.
            num_inducing: Most inducing points.
            num_initial: Evaluations that are known or awaited before a run's first model, at points of a scrambled
                Sobol sequence; d by default, and at least 10.
            rules: How the trust region changes.
            priors: Of the sparse model's hyperparameters, as in `streamgp.fit`: `"half_cauchy"` where few of many
                dimensions are thought to matter. The exact model has `"dim_scaled"`.
            scaling: Of Gaussian outcomes for the model: `"standardize"`, or `"rank"` for normal scores of their ranks,
                where differences of good outcomes are small beside those of bad ones, as on a plateau with cliffs.
            refit: When hyperparameters of the sparse model are learned again: `"always"`, or after a number of new
                outcomes; until then, outcomes are absorbed in closed form.
            seed: Of everything random.
        """
        if num_initial is None:
            num_initial = max(Box.from_bounds(bounds).num_dims, _LEAST_INITIAL)
        self._start(
            region_settings(
                bounds,
                read_region(acquisition, rules),
                maximize=maximize,
                likelihood=likelihood,
                model=model,
                objective=objective,
                num_inducing=num_inducing,
                num_initial=num_initial,
                priors=priors,
                scaling=scaling,
                refit=refit,
                seed=seed,
            )
        )

    @property
    def region(self) -> Region:
        """The trust region of the current run."""
        return self._memory.region

    @property
    def num_runs(self) -> int:
        """Number of times that the search has begun."""
        return self._memory.num_runs

    def plot_trust_region(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the length of the trust region against evaluations.

        Args:
            axes: Where to draw; a new figure by default.
        """
        rule: Any = self._settings.rule
        return draw_region(self._memory.runs, self._memory.lengths, axes, least=rule.region.min_length)

    def __repr__(self) -> str:
        settings = self._settings
        rule: Any = settings.rule
        direction = "maximize" if settings.objectives[0].maximize else "minimize"
        return (
            f"TurboOptimizer({direction} over {settings.space.num_dims} dimensions by {type(rule.rule).__name__}: "
            f"{self._summary()}, run {self.num_runs}, length {self.region.length:g})"
        )

    @property
    def _memory(self) -> RegionMemory:
        memory: RegionMemory = self._state.memory
        return memory


def read_region(acquisition: str | AbstractRule, rules: RegionRules | None) -> TrustRegion:
    """The rule of a trust region, checked.

    Args:
        acquisition: How points in it are chosen.
        rules: How it changes.
    """
    if rules is not None and not isinstance(rules, RegionRules):
        raise ArgumentTypeError(
            f"rules must be a streamgp.acquisition.RegionRules, but is a {type(rules).__name__}. "
            "Write rules=RegionRules(success_tolerance=3)."
        )
    rule = read_rule(acquisition, REGION_RULES)
    if not isinstance(rule, AbstractDrawingRule):
        raise OptionError(
            "A trust region is searched by Thompson, LookaheadThompson or a rule of your own that derives from "
            f"AbstractDrawingRule, but acquisition is {rule!r}."
        )
    return TrustRegion(rule, RegionRules() if rules is None else rules)


def region_settings(
    bounds: Tensor | Sequence[tuple[float, float]],
    rule: AbstractRule,
    *,
    maximize: bool,
    likelihood: str | AbstractLikelihood,
    model: str,
    objective: str,
    num_inducing: int,
    num_initial: int | None,
    priors: str | None,
    scaling: str,
    refit: str | int,
    seed: int,
) -> LoopSettings:
    """Settings of a loop whose rule searches trust regions, checked; the arguments are those of `TurboOptimizer`."""
    space, wanted = Box.from_bounds(bounds), Objective(maximize=maximize, likelihood=likelihood)
    wanted.outcome.check_constants(None)
    _check_outcome(wanted, check_choice(model, _MODELS, "model"))
    if model == "exact" and priors != "dim_scaled":
        raise UnsupportedError(f"model='exact' has the priors 'dim_scaled', but priors is {priors!r}.")
    if scaling == "rank" and not wanted.outcome.has_unknown_noise:
        raise UnsupportedError(f"scaling='rank' needs the likelihood 'gaussian', but it is {likelihood!r}.")
    if model == "exact" and refit != "always":
        raise UnsupportedError(f"model='exact' is fitted to all data each time, but refit is {refit!r}.")
    default = 2 * space.num_dims
    return LoopSettings(
        space=space,
        objectives=(wanted,),
        constraints=(),
        rule=rule,
        surrogate=SurrogateSettings(
            num_inducing=check_count(num_inducing, "num_inducing"),
            refit=read_refit(refit),
            training=Training(objective=objective, priors=priors),
            is_exact=model == "exact",
            is_ranked=check_choice(scaling, _SCALINGS, "scaling") == "rank",
        ),
        search=Search(),
        num_initial=default if num_initial is None else check_count(num_initial, "num_initial", minimum=2),
        seed=check_seed(seed),
    )


def _check_outcome(objective: Objective, model: str) -> None:
    likelihood = objective.outcome.likelihood
    if likelihood.num_inputs != 1:
        raise UnsupportedError(
            f"A trust region follows the best outcome of single points, but {type(likelihood).__name__} compares "
            f"{likelihood.num_inputs} of them. Use streamgp.Optimizer for comparisons."
        )
    if model == "exact" and likelihood.gaussian_noise_variance is None:
        raise UnsupportedError(
            f"model='exact' needs a Gaussian likelihood, but it is {type(likelihood).__name__}. Use model='sparse'."
        )


register(TurboOptimizer, to_fields=TurboOptimizer.to_parts, from_fields=TurboOptimizer.from_parts)
