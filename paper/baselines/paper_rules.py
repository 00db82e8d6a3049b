"""The acquisition functions of the paper's optimization problems, with a study's effort."""

from paper.baselines.uncentered_knowledge_gradient import UncenteredKnowledgeGradient
from streamgp.acquisition import AbstractRule, ExpectedImprovement, KnowledgeGradient, NoisyExpectedImprovement

__all__ = ["paper_rule"]


def paper_rule(name: str, num_fantasies: int, num_samples: int) -> str | AbstractRule:
    """The rule of a name, for `Optimizer`.

    Args:
        name: `"qkg"`, `"uncentered"`, `"qnei"`, `"qei"`, or any that an optimizer knows.
        num_fantasies: Of knowledge gradient, and of that with uncentered pseudo-data.
        num_samples: Of the others.
    """
    rules = {
        "qkg": KnowledgeGradient(num_fantasies),
        "uncentered": UncenteredKnowledgeGradient(num_fantasies),
        "qnei": NoisyExpectedImprovement(num_samples),
        "qei": ExpectedImprovement(num_samples),
    }
    return rules.get(name, name)
