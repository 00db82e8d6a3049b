"""Sites: observations of any likelihood as Gaussian ones."""

from streamgp.sites.belief import AbstractBelief, DenseBelief, FactoredBelief
from streamgp.sites.rules import SiteInfo, SiteRule, Sites, find_sites

__all__ = ["AbstractBelief", "DenseBelief", "FactoredBelief", "SiteInfo", "SiteRule", "Sites", "find_sites"]
