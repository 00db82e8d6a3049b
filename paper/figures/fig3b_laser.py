"""Tuning a free-electron laser: Fig. 3 b, with the further lines of Fig. 9 b."""

from paper.analysis.claims import weigh
from paper.plots.best_values import BestValues
from paper.schema.figure import Figure, Judgement
from paper.schema.record import Records
from paper.studies.laser import STUDY

__all__ = ["FIGURE"]

_PROBLEM = "laser"
_METHODS = tuple(STUDY.methods)
# Margin: a tenth of the way from the prior mean of 1 to the best known value of 5.526.
_VALUES = BestValues(STUDY, margin=0.45, optimum=5.526, value="noise-free pulse energy", axis="evaluations")


def _judge(records: Records) -> Judgement:
    exact, svgp = (tuple(f"{model}-{rule}" for rule in ("qei", "qnei", "qkg")) for model in ("exact", "svgp"))
    pairs = (
        ("SVGP with qKG above WOGP with EI", ("svgp-qkg",), ("wogp-ei",)),
        ("SVGP with qNEI above WOGP with EI", ("svgp-qnei",), ("wogp-ei",)),
        ("exact GPs above SVGPs, mean of all rules", exact, svgp),
        ("exact GPs above WOGP with EI, mean of all rules", exact, ("wogp-ei",)),
        ("SVGP with qKG above random in the bounds", ("svgp-qkg",), ("random",)),
    )
    return weigh(
        [_VALUES.larger(what, _VALUES.compare(records, [_PROBLEM], first, second)) for what, first, second in pairs]
    )


FIGURE = Figure(
    name="fig3b",
    title="Fig. 3 b and 9 b: tuning a free-electron laser",
    study="laser",
    problems=(_PROBLEM,),
    methods=_METHODS,
    claim="An SVGP with knowledge gradient does better than the weighted online GP of the original study. Exact GPs do "
    "better than all of these. Random search makes no progress.",
    notes=(
        "The simulator is fitted from the archive as the original study does: hyperparameters by a FITC likelihood, "
        "then an online GP with 600 basis vectors. There are 16 magnets; the paper says 14.",
        "In the paper's code random search draws from the unit cube, far outside the bounds, where the simulator is "
        "constant: the last line shows that. The other random line draws inside the bounds.",
        "In the paper's code the online GPs have 17 inputs, a box three times as wide and no noise, and the best noisy "
        "value is reported for the others. Here all methods have the same box, noise and initial rows, and the best "
        "noise-free value counts, that of the initial rows too.",
        "The online GPs are given the hyperparameters of the simulator itself, as in the original study; the other "
        "models learn theirs.",
        "Exact GPs are sparse ones with an inducing point at every input. Inputs and outcomes are scaled; the paper "
        "scales neither.",
        "The optimum is the best that searches on the simulator found.",
    ),
    draw=lambda records: _VALUES.draw(records, _PROBLEM, _METHODS),
    describe=lambda records: _VALUES.describe(records, _PROBLEM, _METHODS),
    judge=_judge,
    tables=lambda records: (
        _VALUES.table(records, _PROBLEM, _METHODS),
        _VALUES.verdicts(records, _PROBLEM, _METHODS, reference="random"),
        _VALUES.verdicts(records, _PROBLEM, _METHODS, reference="wogp-ei"),
    ),
    needs_all=False,
)
