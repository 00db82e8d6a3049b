"""How the figures and tables of Hartmann6 compare values, and what they say of the runs."""

from paper.plots.best_values import BestValues
from paper.studies.hartmann import STUDY

__all__ = ["NOTES", "VALUES"]

# Margin of two methods that are called alike: a tenth of the optimum.
VALUES = BestValues(STUDY, margin=0.33, optimum=3.32237, value="noise-free feasible value")
# What all figures and tables of Hartmann6 share.
NOTES = (
    "The exact GPs are sparse ones with an inducing point at every input, which are the same to rounding and hundreds "
    "of times faster in knowledge gradient; the SVGPs have at most 25 inducing points, and are the same until then.",
    "qNEI and qEI are BoTorch's logarithmic forms of the same functions; knowledge gradient has the exact mean as its "
    "inner value.",
    "Outcomes are standardized, and fits go on from the last one until the data has doubled, by L-BFGS on the "
    "collapsed bound; the paper does neither and fits anew with Adam. Kernel, priors and known noise variance are "
    "the paper's.",
    "Judged is the largest noise-free value of feasible points that were evaluated, as in the paper. Knowledge "
    "gradient plans for the point that the model would recommend, which it need not evaluate: where runs have recorded "
    "it, it is shown beside, and what it would say of each comparison is told after the verdict.",
    "The constraint is not active at the optimum of 3.322.",
    "Loops amplify rounding: the same seed repeats bit for bit on one machine with the same versions, and need not on "
    "another processor. Each unit records both.",
)
