"""Many streams at once, one for each key, as one batch: a thousand sensors are one tensor operation."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.checks import check_finite, check_inputs, to_double
from streamgp.conditioning import SparseGP
from streamgp.errors import ArgumentTypeError, FileFormatError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.gp import SparseProcess
from streamgp.processes import sent_by_value
from streamgp.storage import register
from streamgp.storage.registry import check_finite_fields
from streamgp.threads import limit_threads
from streamgp.training import FitResult
from streamgp.training.result import cast_process
from streamgp.training.scaling import Scaling

__all__ = ["KeyedLearner"]


def _check_keyed(learner: "KeyedLearner") -> None:
    check_finite_fields(learner)
    if not len(set(learner.keys)) == len(learner.keys) == len(learner.means):
        raise FileFormatError("The file's keys are not those of its beliefs. It is damaged.")


@sent_by_value
@register(name="keyed.KeyedLearner", check=_check_keyed)
@final
@dataclass(frozen=True, eq=False)
class KeyedLearner:
    r"""Beliefs about many streams that share hyperparameters and inducing points, each with a belief of its own.

    A row with features $\phi$, residual $r$ and noise $\sigma^2$ changes its key's mean and root, $\bar S = R R^\top$,
    by Potter's formula, with $w = R^\top \phi$ and $s = \sigma^2 + w^\top w$:

    $$
    \bar m \leftarrow \bar m + \tfrac1s R w (r - \phi^\top \bar m), \qquad
    R \leftarrow R - \tfrac{1}{s + \sqrt{s \sigma^2}} R w w^\top ,
    $$

    which is what `SparseGP.absorb` with points kept does. Frozen: `learn` returns another learner.

    Attributes:
        prior: Hyperparameters and inducing points, in the units of training.
        noise_variance: $\sigma^2$.
        scaling: The units; None for those of the user.
        keys: Keys so far, in the order in which they came.
        means: Whitened mean for each key.
        roots: Root of the whitened covariance for each key.
        counts: Rows of each key so far.

    References:
        Potter, Stern (1963), Statistical filtering of space navigation measurements.
    """

    prior: SparseGP
    noise_variance: Float[Tensor, ""]
    scaling: Scaling | None
    keys: tuple[Any, ...]
    means: Float[Tensor, "k m"]
    roots: Float[Tensor, "k m m"]
    counts: Int[Tensor, " k"]

    @classmethod
    def from_fit(cls, result: FitResult) -> "KeyedLearner":
        """Start with the hyperparameters of a fit, to rows of some of the keys for instance, and no key.

        Args:
            result: With Gaussian noise; what it believes of its rows is not taken over.
        """
        if not isinstance(result, FitResult):
            raise ArgumentTypeError(f"result must be what fit returned, but is a {type(result).__name__}.")
        noise = result.likelihood.gaussian_noise_variance
        if noise is None or noise.dim():
            raise UnsupportedError("Keyed streams have Gaussian noise of one variance. Fit with a Gaussian likelihood.")
        fitted = cast_process(result.gp.process, torch.float64).process
        process = SparseProcess.from_prior(fitted.prior, fitted.inducing_points, jitter=fitted.jitter)
        m = len(process.inducing_points)
        return cls(
            SparseGP(process),
            noise.detach().double(),
            None if result.scaling is None else result.scaling.double(),
            (),
            torch.zeros(0, m, dtype=torch.float64),
            torch.zeros(0, m, m, dtype=torch.float64),
            torch.zeros(0, dtype=torch.long),
        )

    @limit_threads()
    def learn(self, keys: Sequence[Hashable], X: Any, y: Any) -> "KeyedLearner":
        """Learn rows: those of different keys together, those of one key in their order.

        Args:
            keys: One for each row; new ones may come at any time.
            X: Inputs `(n, d)`.
            y: Targets `(n,)`.
        """
        inputs, targets = self._read(keys, X), check_finite(to_double(y, "y"), "y")
        if targets.shape != inputs.shape[:1]:
            raise ShapeError(f"y must have shape ({len(inputs)},), as X has, but has shape {tuple(targets.shape)}.")
        learner = self._with(keys)
        members = np.fromiter((learner._places[key] for key in keys), dtype=np.int64, count=len(inputs))
        process, targets = self.prior.process, targets if self.scaling is None else self.scaling.targets(targets)
        phi = process.features(inputs).mT
        residual = targets - process.prior.mean(inputs)
        means, roots, noise = learner.means, learner.roots, self.noise_variance
        for rows in _rounds(members):
            chosen = torch.from_numpy(members[rows])
            # A row of every key is the usual case, and needs no copies of some of them.
            is_all = len(rows) == len(learner.keys)
            f, r = phi[rows], residual[rows]
            R, m = (roots, means) if is_all else (roots[chosen], means[chosen])
            w = torch.einsum("kij,ki->kj", R, f)
            s = noise + w.square().sum(-1)
            moved = torch.einsum("kij,kj->ki", R, w)
            m = torch.addcmul(m, moved, ((r - (f * m).sum(-1)) / s).unsqueeze(-1))
            share = 1.0 / (s + (s * noise).sqrt())
            R = torch.baddbmm(R, (share.unsqueeze(-1) * moved).unsqueeze(-1), w.unsqueeze(-2), alpha=-1.0)
            means, roots = (m, R) if is_all else (means.index_copy(0, chosen, m), roots.index_copy(0, chosen, R))
        counts = learner.counts + torch.bincount(torch.from_numpy(members), minlength=len(learner.keys))
        return replace(learner, means=means, roots=roots, counts=counts)

    def predict(self, keys: Sequence[Hashable], X: Any) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Means and variances of targets, noise included, in the user's units; of the prior for keys never seen.

        Args:
            keys: One for each row.
            X: Inputs `(n, d)`.
        """
        inputs = self._read(keys, X)
        learner, process = self._with(keys), self.prior.process
        chosen = torch.tensor([learner._places[key] for key in keys], dtype=torch.long)
        phi = process.features(inputs).mT
        slack = (process.prior.variance(inputs) - phi.square().sum(-1)).clamp_min(0.0)
        mean = process.prior.mean(inputs) + (phi * learner.means[chosen]).sum(-1)
        spread = (learner.roots[chosen].mT @ phi.unsqueeze(-1)).squeeze(-1).square().sum(-1)
        variance = slack + spread + self.noise_variance
        if self.scaling is None:
            return mean, variance
        scale = self.scaling.target_scale
        return self.scaling.target_shift + scale * mean, scale.square() * variance

    def of(self, key: Hashable) -> SparseGP:
        """Belief about one key, in the units of training: to save, merge or condition it apart."""
        if key not in self._places:
            raise ValueRangeError(f"There has been no row of the key {key!r}. There are {len(self.keys)} keys.")
        place = self._places[key]
        return SparseGP(self.prior.process.with_belief(self.means[place], self.roots[place]))

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {key: place for place, key in enumerate(self.keys)}

    def _with(self, keys: Sequence[Hashable]) -> "KeyedLearner":
        """Add keys that are new, at the prior."""
        known = self._places
        new = [key for key in dict.fromkeys(keys) if key not in known]
        if not new:
            return self
        k, m = len(new), self.means.shape[-1]
        eye = torch.eye(m, dtype=self.roots.dtype).expand(k, m, m)
        return replace(
            self,
            keys=(*self.keys, *new),
            means=torch.cat([self.means, self.means.new_zeros(k, m)]),
            roots=torch.cat([self.roots, eye]),
            counts=torch.cat([self.counts, self.counts.new_zeros(k)]),
        )

    def _read(self, keys: Sequence[Hashable], X: Any) -> Tensor:
        Z = self.prior.inducing_points
        inputs = check_inputs(to_double(X, "X"), num_dims=Z.shape[-1], like=Z)
        if inputs.dim() != 2 or len(keys) != len(inputs):
            raise ShapeError(
                f"keys must have one key for each row of X (n, {Z.shape[-1]}), but there are {len(keys)} keys and X "
                f"has shape {tuple(inputs.shape)}."
            )
        for row, key in enumerate(keys):
            if not isinstance(key, Hashable):
                raise ArgumentTypeError(
                    f"keys must be texts, numbers or tuples, but that of row {row} is a {type(key).__name__}. Use its "
                    "text, or a tuple in place of a list."
                )
        return inputs if self.scaling is None else self.scaling.inputs(inputs)


def _rounds(members: np.ndarray) -> list[np.ndarray]:
    """Rows in rounds in which no key comes twice, each key's in their order."""
    order = np.argsort(members, kind="stable")
    ordered = members[order]
    is_first = np.r_[True, ordered[1:] != ordered[:-1]]
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    turn = np.arange(len(order)) - starts
    return [order[turn == each] for each in range(int(turn.max(initial=-1)) + 1)]
