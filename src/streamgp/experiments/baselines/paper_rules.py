"""The acquisition functions of the paper's optimisation problems, with a study's effort."""

from streamgp.acquisition import AbstractRule, ExpectedImprovement, KnowledgeGradient, NoisyExpectedImprovement

__all__ = ["paper_rule"]


def paper_rule(name: str, num_fantasies: int, num_samples: int) -> str | AbstractRule:
    """The rule of a name, for `Optimizer`.

    Args:
        name: `"qkg"`, `"qnei"`, `"qei"`, or any that an optimizer knows.
        num_fantasies: Of knowledge gradient.
        num_samples: Of the other two.
    """
    rules = {
        "qkg": KnowledgeGradient(num_fantasies),
        "qnei": NoisyExpectedImprovement(num_samples),
        "qei": ExpectedImprovement(num_samples),
    }
    return rules.get(name, name)
