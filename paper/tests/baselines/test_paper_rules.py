"""Rules of the paper's optimization problems."""

from paper.baselines.paper_rules import paper_rule
from streamgp.acquisition import KnowledgeGradient, NoisyExpectedImprovement


def test_the_effort_of_a_study_reaches_the_rule():
    assert paper_rule("qkg", 7, 9) == KnowledgeGradient(7)
    assert paper_rule("qnei", 7, 9) == NoisyExpectedImprovement(9)


def test_other_names_are_left_to_the_optimizer():
    assert paper_rule("random", 7, 9) == "random"
