"""What is known of a stream in files: a restored learner goes on as if never saved."""

from streamgp.sites import SiteRule
from streamgp.storage import register
from streamgp.streaming.bank import Bank
from streamgp.streaming.baselines import ClassBaseline, ValueBaseline
from streamgp.streaming.bends import Bends
from streamgp.streaming.calibration import Calibration
from streamgp.streaming.columns import Column, Preprocessing
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.hyperparameters import FittedHyperparameters
from streamgp.streaming.learner import Halfway, StreamLearner
from streamgp.streaming.metrics import MetricsPoint, StreamMetrics
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.outliers import Outliers
from streamgp.streaming.points import Usage
from streamgp.streaming.reach import Reach
from streamgp.streaming.refitting import RefitReport
from streamgp.streaming.rows import Rows
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.sharpness import Sharpness
from streamgp.streaming.units import Units

__all__ = ["STORED"]

STORED = (
    Bank,
    Bends,
    Calibration,
    ClassBaseline,
    ClassScore,
    Column,
    Expert,
    Experts,
    Halfway,
    FittedHyperparameters,
    MetricsPoint,
    Mixture,
    OneVsRest,
    Outliers,
    Preprocessing,
    Reach,
    RefitReport,
    Rows,
    Sharpness,
    StreamLearner,
    StreamMetrics,
    StreamModel,
    StreamSettings,
    Units,
    Usage,
    ValueBaseline,
    ValueScore,
)


for _cls in STORED:
    register(_cls)
register(SiteRule, name="streaming.SiteRule")
