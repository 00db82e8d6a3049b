import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier

from paper.baselines.probability_forest import ProbabilityForest


@pytest.mark.parametrize(("least_leaf", "num_columns"), [(1, 2), (5, 6)])
def test_a_forest_is_the_one_of_scikit_learn(least_leaf, num_columns):
    numbers = np.random.default_rng(0)
    rows, weights = numbers.normal(size=(80, num_columns)), numbers.uniform(size=80)
    labels = (rows[:, 0] + numbers.normal(size=80) > 0.0).astype(float)
    forest = ProbabilityForest.grow(rows, labels, weights, num_trees=20, least_leaf=least_leaf, seed=3)
    reference = RandomForestClassifier(20, min_samples_leaf=least_leaf, random_state=3)
    reference.fit(rows, labels, sample_weight=weights)
    new = numbers.normal(size=(50, num_columns))
    assert_array_equal(forest.predict(new), reference.predict_proba(new)[:, 1])
    assert forest.predict(new).std() > 0.0
