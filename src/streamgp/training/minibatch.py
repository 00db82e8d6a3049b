"""Training in minibatches: natural gradients for the belief, Adam for hyperparameters and inducing points."""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError, OptionError, ValueRangeError
from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.linalg import apply, cholesky
from streamgp.training.arguments import Minibatches
from streamgp.training.batches import AbstractSource
from streamgp.training.collapsed import NaturalBelief, collapse, sum_batches
from streamgp.training.features import Features, Observed, observed_features
from streamgp.training.full_batch import Task, Trained
from streamgp.training.parameters import Hyperparameters, hyperparameter_space
from streamgp.training.priors import hyper_prior, likelihood_bounds, target_unit
from streamgp.training.result import optimal_process, prior_process
from streamgp.training.scaling import Scaling, to_observed
from streamgp.training.uncollapsed import BELIEF_MEAN, BELIEF_ROOT, belief_of, divergence, latent_moments, pack_belief

__all__ = ["natural_step", "train_in_minibatches"]

# The rates at the end of training, relative to those at its start.
_LAST_RATE = 0.1
# Steps for which there are enough passes, if their number is not given.
_NUM_STEPS = 1000
# Weight of the newest batch in the smoothed objective.
_SMOOTHING = 0.05


def natural_step(
    belief: NaturalBelief,
    features: Features,
    likelihood: AbstractLikelihood,
    targets: Float[Tensor, " n"],
    *,
    weight: float,
    rate: float,
) -> NaturalBelief:
    r"""Take a natural-gradient step on a batch.

    With $g$ and $h$ the expected first and second derivatives of the log density, $\tau = \max(-h, 0)$ and weight $w$,

    $$
    \bar S^{-1} \leftarrow (1 - \rho) \bar S^{-1} + \rho (I + w \phi \operatorname{diag}(\tau) \phi^\top), \qquad
    \bar S^{-1} \bar m \leftarrow (1 - \rho) \bar S^{-1} \bar m + \rho w \phi (g + \tau \phi^\top \bar m) .
    $$

    Args:
        belief: Before the step.
        features: Of the batch.
        likelihood: Of the observations.
        targets: Of the batch.
        weight: $w$, all observations over those of the batch, over the temperature.
        rate: $\rho$.

    References:
        Khan, Lin (2017), Conjugate-computation variational inference.
    """
    m, R, _ = belief.moments()
    phi = features.phi
    mean, variance = latent_moments(features, m, R)
    first, second = likelihood.expected_derivatives(mean, variance, targets)
    tau = (-second).clamp_min(0.0)
    eye = torch.eye(len(phi), dtype=phi.dtype, device=phi.device)
    precision = torch.lerp(belief.precision, eye + weight * (phi * tau) @ phi.mT, rate)
    pull = torch.lerp(belief.pull, weight * apply(phi, first + tau * (mean - features.mean)), rate)
    return NaturalBelief(precision, pull)


def train_in_minibatches(
    setting: Hyperparameters, source: AbstractSource, task: Task, *, scaling: Scaling | None, sizes: Minibatches
) -> tuple[Trained, SparseProcess]:
    """Train from a start that was found on the sample of the source.

    Memory is that of one batch, O(b m + m²), whatever the number of observations. The belief follows natural gradients
    for `"elbo"`, and Adam as all else for `"pll"`, whose terms are not concave.
    """
    sample, options, log = task.data, task.options, task.log
    run = _StochasticTraining(setting, task, num_data=source.num_data, sizes=sizes)
    num_epochs = _num_epochs(source, sizes)
    for epoch in range(num_epochs):
        seen = 0
        for rows in source.visit(options.generator):
            run.step(to_observed(rows.inputs, rows.targets, scaling), (epoch + seen / source.num_data) / num_epochs)
            seen += len(rows.targets)
    if math.isnan(run.bound):
        raise OptionError(
            "A pass over X had no batches, though an earlier one had. A function must return a new iterator each time."
        )
    setting = run.setting()
    log.reason, log.is_converged = f"passes over all {source.num_data} observations done: {num_epochs}", True
    with torch.no_grad():
        if source.is_repeatable and options.objective == "elbo":
            batches = (to_observed(rows.inputs, rows.targets, scaling) for rows in source.visit(options.generator))
            if setting.likelihood.is_gaussian:
                sums = sum_batches(setting, batches, beta=options.beta)
                optimum = collapse(sums, options.beta)
                run.belief, run.bound = NaturalBelief(optimum.precision, sums.pull), float(optimum.bound)
                run.slack = options.beta * float(sums.slack) / sums.num_data
            else:
                for data in batches:
                    run.settle(setting, data)
        process = prior_process(setting, sample.jitter)
        m, R = belief_of(setting) if options.objective == "pll" else run.belief.moments()[:2]
        process = process.with_belief(m, R.contiguous())
        log_prior = float(hyper_prior(setting, sample, options.priors).log_density(setting))
    return Trained(setting, run.bound, log_prior, run.slack), process


class _StochasticTraining:
    """The state of stochastic training; bound and slack are smoothed over batches."""

    def __init__(self, setting: Hyperparameters, task: Task, *, num_data: int, sizes: Minibatches) -> None:
        sample, options = task.data, task.options
        self.num_data, self.sizes, self.options, self.log = num_data, sizes, options, task.log
        process = optimal_process(setting, sample)
        self.belief = _scaled_belief(process, num_data / sample.num_data)
        self.prior = hyper_prior(setting, sample, options.priors)
        extra, bounds = {**self.prior.start, **setting.extra}, dict(self.prior.bounds)
        if options.objective == "pll":
            m, R, _ = self.belief.moments()
            extra |= pack_belief(m, R)
            bounds |= dict.fromkeys((BELIEF_MEAN, BELIEF_ROOT), (-math.inf, math.inf))
        self.space = hyperparameter_space(
            replace(setting, extra=extra),
            learn_inducing=options.learn_inducing and bool(len(setting.inducing_points)),
            extra=bounds,
            likelihood_bounds=likelihood_bounds(setting, sample),
            target_unit=target_unit(setting, sample),
        )
        self.x = self.space.start.clone().requires_grad_(True)
        self.optimizer = torch.optim.Adam([self.x], lr=sizes.learning_rate)
        self.bound = self.slack = math.nan
        self.num_settled = 0

    def setting(self) -> Hyperparameters:
        """The current setting."""
        return self.space.setting(self.x)

    def step(self, data: Observed, progress: float) -> None:
        """Move belief and hyperparameters along the gradients of a batch; take both back where that fails."""
        decay = _LAST_RATE + (1.0 - _LAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
        self.optimizer.param_groups[0]["lr"] = decay * self.sizes.learning_rate
        before = self.x.detach().clone(), self.belief
        self.log.num_evaluations += 1
        try:
            self._move(data, decay * self.sizes.natural_rate)
        except (NumericalError, ValueRangeError) as error:
            self.log.num_rejected += 1
            if self.log.num_rejected > 10 and 2 * self.log.num_rejected > self.log.num_evaluations:
                raise NumericalError(
                    f"{self.log.num_rejected} of {self.log.num_evaluations} steps failed, the last with: {error} "
                    "Lower learning_rate of Minibatches, or pass standardize=True."
                ) from error
            with torch.no_grad():
                self.x.copy_(before[0])
            self.belief = before[1]

    def settle(self, setting: Hyperparameters, data: Observed) -> None:
        """Move the belief alone, by steps that get smaller, so that it becomes an average over all batches."""
        self.num_settled += 1
        bound = self._bound(setting, data, self.sizes.natural_rate / (1.0 + self.sizes.natural_rate * self.num_settled))
        self.bound += _SMOOTHING * (bound.item() - self.bound)

    def _move(self, data: Observed, natural_rate: float) -> None:
        def objective(setting: Hyperparameters) -> tuple[Tensor, Tensor]:
            return self._bound(setting, data, natural_rate), self.prior.log_density(setting)

        bound, log_prior = self.space.evaluate(self.x, objective)
        (gradient,) = torch.autograd.grad(bound + log_prior, self.x)
        if not bool(torch.isfinite(bound) & torch.isfinite(gradient).all()):
            raise NumericalError("The objective is NaN or infinite.")
        self.x.grad = -gradient / self.num_data
        self.optimizer.step()
        with torch.no_grad():
            self.x.clamp_(*self.space.bounds)
        self.bound = _smoothed(self.bound, bound.item())
        self.log.history.append(self.bound + log_prior.item())
        if self.options.on_iteration is not None:
            self.options.on_iteration(self.log.history[-1])

    def _bound(self, setting: Hyperparameters, data: Observed, natural_rate: float) -> Tensor:
        """Estimate the bound after a natural-gradient step of the belief."""
        features, likelihood, y = observed_features(setting, data), setting.likelihood, data.targets
        weight, options = self.num_data / data.num_data, self.options
        if options.objective == "pll":
            m, R = belief_of(setting)
            kl = divergence(m, R)
        else:
            with torch.no_grad():
                plain = features.detach()
                self.belief = natural_step(
                    self.belief, plain, likelihood, y, weight=weight / options.beta, rate=natural_rate
                )
                m, R, kl = self.belief.moments()
        mean, variance = latent_moments(features, m, R)
        with torch.no_grad():
            _, curvature = likelihood.expected_derivatives(mean, variance, y)
            self.slack = _smoothed(self.slack, (features.slack * (-curvature).clamp_min(0.0)).mean().item())
        term = likelihood.log_predictive_density if options.objective == "pll" else likelihood.expected_log_density
        return weight * term(mean, variance, y).sum() - options.beta * kl


def _smoothed(old: float, new: float) -> float:
    return new if math.isnan(old) else old + _SMOOTHING * (new - old)


def _num_epochs(source: AbstractSource, sizes: Minibatches) -> int:
    if not source.is_repeatable:
        return 1
    return sizes.num_epochs or math.ceil(_NUM_STEPS * sizes.batch_size / source.num_data)


def _scaled_belief(process: SparseProcess, factor: float) -> NaturalBelief:
    """The belief that as many times more observations of the same kind would give."""
    R = process.whitened_root.double()
    L, _ = cholesky(R @ R.mT, name="the covariance of the belief")
    precision = torch.cholesky_inverse(L)
    eye = torch.eye(len(L), dtype=L.dtype, device=L.device)
    return NaturalBelief(eye + factor * (precision - eye), factor * apply(precision, process.whitened_mean.double()))
