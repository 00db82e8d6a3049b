"""Models for BoTorch: sparse GPs that can be conditioned and fantasized."""

from streamgp.models.multi_output import OnlineMultiOutputGP
from streamgp.models.multi_task import OnlineMultiTaskGP
from streamgp.models.online_gp import OnlineGP
from streamgp.models.paths import OnlinePaths
from streamgp.models.posterior import LatentPosterior

__all__ = ["LatentPosterior", "OnlineGP", "OnlineMultiOutputGP", "OnlineMultiTaskGP", "OnlinePaths"]
