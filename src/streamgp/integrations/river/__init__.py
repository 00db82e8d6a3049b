"""River: estimators that learn from a stream, row by row or in blocks.

Features come by name, in any order. One that is missing is replaced by the mean of what was given of it so far. One
that is new becomes an input during the warm-up; after it, new features are ignored and counted.
"""

from streamgp.integrations.extras import missing_package

try:
    from streamgp.integrations.river.classifier import StreamingGPClassifier
    from streamgp.integrations.river.multi_target import StreamingGPMultiTargetRegressor
    from streamgp.integrations.river.regressor import StreamingGPRegressor
except ModuleNotFoundError as error:
    raise missing_package(error, "river") from error

__all__ = ["StreamingGPClassifier", "StreamingGPMultiTargetRegressor", "StreamingGPRegressor"]
