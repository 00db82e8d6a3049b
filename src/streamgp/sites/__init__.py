"""Sites: observations of any likelihood as Gaussian ones."""

from streamgp.sites.belief import AbstractBelief, DenseBelief, FactoredBelief
from streamgp.sites.rules import SiteInfo, Sites, find_sites
from streamgp.sites.site_rule import SiteRule

__all__ = ["AbstractBelief", "DenseBelief", "FactoredBelief", "SiteInfo", "SiteRule", "Sites", "find_sites"]
