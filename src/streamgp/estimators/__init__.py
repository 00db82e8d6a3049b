"""Batch regression and classification by the conventions of scikit-learn."""

from streamgp.estimators.classifier import GPClassifier
from streamgp.estimators.regressor import GPRegressor

__all__ = ["GPClassifier", "GPRegressor"]
