"""From the end of training to the model that users hold."""

from dataclasses import replace

import torch
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.gp import Prior, SparseProcess
from streamgp.training.features import Observed
from streamgp.training.full_batch import Task, Trained
from streamgp.training.lbfgs import maximize
from streamgp.training.objective import hyper_prior, likelihood_bounds, target_unit
from streamgp.training.parameters import Hyperparameters, hyperparameter_space
from streamgp.training.sites_bound import FixedSites
from streamgp.training.uncollapsed import BELIEF_MEAN, BELIEF_ROOT, belief_of, pack_belief, uncollapsed_bound

__all__ = ["cast_process", "learn_belief", "optimal_process", "prior_process", "rounded_points"]

# Of 1000 rows of rover, elevators, protein and powerplant, the log density of 1000 others was largest after 0, 200, 200
# and 200 iterations, and less after 400 than after 100 on all four; its sum was largest after 100.
_MOST_ITERATIONS = 100


def rounded_points(setting: Hyperparameters, dtype: torch.dtype) -> Hyperparameters:
    """The same with inducing points that the dtype of the result can hold."""
    Z = setting.inducing_points
    return replace(setting, inducing_points=Z.to(dtype).to(Z.dtype))


def prior_process(setting: Hyperparameters, jitter: float) -> SparseProcess:
    """The prior of a setting as a process, with jitter relative to its variance."""
    Z = setting.inducing_points.detach()
    prior = Prior.snapshot(setting.kernel, setting.mean, like=Z)
    Z = Z.expand(*prior.batch_shape, *Z.shape)  # latent functions share them
    return SparseProcess.from_prior(prior, Z, jitter=float(prior.inducing(Z).jitter(jitter)))


def optimal_process(
    setting: Hyperparameters, data: Observed, *, beta: float = 1.0, sites: FixedSites | None = None
) -> SparseProcess:
    """Put the optimal belief for a setting in closed form, by absorbing all observations into its prior.

    Args:
        setting: Hyperparameters and inducing points.
        data: All observations, with a carried belief that takes the place of the prior.
        beta: Weight of the divergence; Gaussian observations only.
        sites: Optimal sites of other observations, if they are known already.
    """
    before = prior_process(setting, data.jitter) if data.carried is None else data.carried.moved(setting)
    gp, likelihood, X, y = SparseGP(before), setting.likelihood, data.inputs, data.targets
    noise = likelihood.gaussian_noise_variance
    if noise is not None:
        gp, _ = gp.absorb(X, y, noise_variance=beta * noise.detach().to(y), inducing="keep")
    elif sites is not None and data.others is None:
        gp, _ = gp.absorb(X, sites.pull / sites.precision, noise_variance=1.0 / sites.precision, inducing="keep")
    else:
        X = X if data.others is None else torch.stack([X, data.others], dim=-2)
        gp, _ = gp.absorb(X, y, likelihood=likelihood, inducing="keep")
    return gp.process


def learn_belief(trained: Trained, task: Task) -> tuple[Trained, SparseProcess]:
    """Learn the belief together with the hyperparameters, for objectives in which it has no closed form.

    Starts at the optimum of the bound, and stops early: from some iteration on, what was observed becomes likelier and
    other observations less likely.
    """
    setting, data, options = trained.setting, task.data, task.options
    process = optimal_process(setting, data, sites=trained.sites)
    prior = hyper_prior(setting, data, options)
    setting = replace(
        setting, extra={**prior.start, **setting.extra, **pack_belief(process.whitened_mean, process.whitened_root)}
    )
    free = {BELIEF_MEAN: (-float("inf"), float("inf")), BELIEF_ROOT: (-float("inf"), float("inf"))}
    space = hyperparameter_space(
        setting,
        learn_inducing=options.learn_inducing and 0 < len(setting.inducing_points) < len(data.all_inputs),
        extra={**prior.bounds, **free},
        likelihood_bounds=likelihood_bounds(setting, data),
        target_unit=target_unit(setting, data),
    )

    def bound(s: Hyperparameters) -> Tensor:
        return uncollapsed_bound(s, data, objective=options.objective, beta=options.beta)

    ascent = maximize(
        lambda x: space.evaluate(x, lambda s: bound(s) + prior.log_density(s)),
        space.start,
        bounds=space.bounds,
        max_iterations=min(2 * options.most_iterations, _MOST_ITERATIONS),
        tolerance=0.1 * options.tolerance,  # from the optimum of the bound the first steps gain little
        scale=float(data.num_data),
        on_iteration=options.on_iteration,
    )
    # Earlier values belong to another objective.
    task.log.history.clear()
    task.log.add(ascent)
    setting = space.setting(ascent.x)
    with torch.no_grad():
        log_prior = float(hyper_prior(setting, data, options).log_density(setting))
        m, R = belief_of(setting)
    return Trained(setting, ascent.value - log_prior, log_prior, trained.trace_slack), prior_process(
        setting, data.jitter
    ).with_belief(m, R)


def cast_process(process: SparseProcess, dtype: torch.dtype) -> SparseGP:
    """The model in the dtype of the data; its inducing points have been rounded before."""
    Z = process.inducing_points.to(dtype)
    prior = Prior.snapshot(process.prior.kernel, process.prior.mean_function, like=Z)
    return SparseGP(
        SparseProcess(prior, Z, process.whitened_mean.to(dtype), process.whitened_root.to(dtype), process.jitter)
    )
