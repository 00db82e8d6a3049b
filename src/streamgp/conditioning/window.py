"""Revisiting the sites of the last batches after later data."""

from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from streamgp.checks import keep_count
from streamgp.conditioning.absorb import AbsorbInfo
from streamgp.conditioning.sparse_gp import SparseGP
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import SiteRule

__all__ = ["SiteWindow"]


@final
@dataclass(frozen=True, eq=False)
class SiteWindow:
    """A sparse GP that keeps its last batches at hand, and finds their sites anew together with each new one.

    One-pass filtering fixes the site of an observation by what was believed when it came. Here the last batches are
    absorbed again, jointly, from the belief before them, so that their sites see later data; what leaves the window
    keeps the sites that were found last. Each step costs as much as absorbing the whole window.

    Attributes:
        gp: The belief after all batches.
        likelihood: Of all observations, with the same constants for all.
        num_batches: How many batches are revisited, the new one included; 1 is plain filtering.
        sites: The rule of the sites.
        anchor: The belief before the batches in the window; `gp` at the start.
        batches: Inputs and targets in the window.
        oldest_sites: Targets and variances of the oldest batch as Gaussian observations, as they were found last.
    """

    gp: SparseGP
    likelihood: AbstractLikelihood
    num_batches: int = 3
    sites: str | SiteRule = "variational"
    anchor: SparseGP | None = None
    batches: tuple[tuple[Tensor, Tensor], ...] = ()
    oldest_sites: tuple[Tensor, Tensor] | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        keep_count(self, "num_batches")

    def absorb(self, X: Tensor, y: Tensor, *, inducing: str | Tensor = "pivoted") -> tuple["SiteWindow", AbsorbInfo]:
        """Absorb a batch and revisit those before it; arguments as in `SparseGP.absorb`.

        Returns:
            The new window, and diagnostics of the joint step.
        """
        anchor = self.gp if self.anchor is None else self.anchor
        batches = (*self.batches, (X, y))
        if len(batches) > self.num_batches and self.oldest_sites is not None:
            targets, variance = self.oldest_sites
            anchor, _ = anchor.absorb(batches[0][0], targets, noise_variance=variance, inducing=inducing)
            batches = batches[1:]
        inputs, outcomes = torch.cat([X for X, _ in batches], dim=-2), torch.cat([y for _, y in batches], dim=-1)
        gp, info = anchor.absorb(inputs, outcomes, likelihood=self.likelihood, sites=self.sites, inducing=inducing)
        first = batches[0][1]
        noise = self.likelihood.gaussian_noise_variance
        if info.site_info is not None:
            n = first.shape[-1]
            oldest = info.site_info.sites.targets[..., :n], info.site_info.sites.variance[..., :n]
        else:  # Gaussian observations are their own sites
            assert noise is not None
            oldest = first, noise.to(first)
        return replace(self, gp=gp, anchor=anchor, batches=batches, oldest_sites=oldest), info
