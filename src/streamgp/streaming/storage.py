"""What is known of a stream in files: a restored learner goes on as if never saved."""

from torch import Tensor

from streamgp.sites import SiteRule
from streamgp.storage import register
from streamgp.storage.registry import Fields, is_registered
from streamgp.streaming.bank import Bank
from streamgp.streaming.baselines import ClassBaseline, ValueBaseline
from streamgp.streaming.bends import Bends
from streamgp.streaming.calibration import Calibration
from streamgp.streaming.columns import Column, Preprocessing
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.hyperparameters import LearnedKernel
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
    LearnedKernel,
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


def _rename_totals(fields: Fields) -> Fields:
    """Version 1 called numbers of trials `totals`."""
    return {"total_count" if name == "totals" else name: value for name, value in fields.items()}


def _add_reach(fields: Fields) -> Fields:
    """Version 1 of the model had no reach: what is known of it is the range that the units were chosen for."""
    units = fields["units"]
    return {**fields, "reach": Reach(units.lower, units.upper)}


def _add_outliers(fields: Fields) -> Fields:
    """Version 1 of the mixture knew of no outliers, which the next refit looks for, and of no lasting weights."""
    outliers = Outliers.none(*fields["squared_errors"].shape[1:])
    return {**fields, "outliers": outliers, "lasting_log_weights": fields["log_weights"]}


def _add_sharpness(fields: Fields) -> Fields:
    """Version 1 of labels did not learn how sure to be."""
    return {**fields, "sharpness": Sharpness()}


def _add_frequencies(fields: Fields) -> Fields:
    """Version 1 of how sure to be knew nothing of frequencies of classes; the powers come first now."""
    others = len(Sharpness().weights) - len(fields["weights"])
    return {**vars(Sharpness()), "weights": (*fields["weights"], *[0.0] * others)}


def _drop_num_followed(fields: Fields) -> Fields:
    """Version 1 counted separately the rows whose slack was known."""
    return {name: value for name, value in fields.items() if name != "num_followed"}


def _to_arrays(fields: Fields) -> Fields:
    """Earlier versions held tensors where arrays of NumPy are now."""
    return {name: value.numpy() if isinstance(value, Tensor) else value for name, value in fields.items()}


register(Mixture, version=3, migrations={1: _add_outliers, 2: _to_arrays})
register(OneVsRest, version=2, migrations={1: _add_sharpness})
register(Outliers, version=2, migrations={1: _to_arrays})
register(Rows, version=3, migrations={1: _rename_totals, 2: _to_arrays})
register(Sharpness, version=2, migrations={1: _add_frequencies})
register(StreamModel, version=2, migrations={1: _add_reach})
register(Usage, version=3, migrations={1: _drop_num_followed, 2: _to_arrays})
for _cls in STORED:
    if not is_registered(_cls):
        register(_cls)
register(SiteRule, name="streaming.SiteRule")
