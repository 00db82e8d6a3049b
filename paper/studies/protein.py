"""Which inducing points to keep while rows of the protein data arrive one by one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from paper.baselines.absorbing import absorb_row
from paper.baselines.osvgp_rows import follow_rows
from paper.datasets import Regression, load_protein
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.streams import StreamLearner, StreamOptions
from streamgp.training import fit

__all__ = ["STUDY", "ProteinSettings"]

# Weight of divergences of the variants of O-SVGP.
_OSVGP = {"osvgp": 1.0, "osvgp-beta": 1e-3}


@final
@dataclass(frozen=True)
class ProteinSettings:
    """Settings of the stream. Counts larger than the parts of the data mean all of them.

    Attributes:
        num_first: Rows of the first fit, of the 5 % that it may see.
        num_streamed: Rows that arrive one by one.
        num_test: Rows that are held out.
        num_inducing: Number of inducing points.
        num_marks: How often the error on the held-out rows is measured, besides before the stream.
    """

    num_first: int
    num_streamed: int
    num_test: int
    num_inducing: int
    num_marks: int


def run(problem: str, method: str, seed: int, settings: ProteinSettings) -> UnitOutcome:
    """Learn the stream by a method.

    Returns:
        `num_seen`, rows of the stream, and `rmse`, the error on the held-out rows after these, in standard deviations
        of the target.
    """
    rows = _cut(load_protein(seed), settings)
    n = len(rows.y_stream)
    marks = sorted({round(n * index / settings.num_marks) for index in range(1, settings.num_marks + 1)})
    learn = _with_refits if method == "refits" else _with_policy
    means = learn(rows, marks, method=method, seed=seed, settings=settings)
    errors = [rounded(float((mean - rows.y_test).square().mean().sqrt())) for mean in means]
    return {"num_seen": [0, *marks], "rmse": errors}


def _cut(rows: Regression, settings: ProteinSettings) -> Regression:
    first, streamed, test = settings.num_first, settings.num_streamed, settings.num_test
    return Regression(
        rows.X_first[:first],
        rows.y_first[:first],
        rows.X_stream[:streamed],
        rows.y_stream[:streamed],
        rows.X_test[:test],
        rows.y_test[:test],
    )


def _with_policy(
    rows: Regression, marks: list[int], *, method: str, seed: int, settings: ProteinSettings
) -> Iterator[Tensor]:
    """Predicted means before the stream and at the marks; hyperparameters are those of the first fit.

    O-SVGP starts from the same fit, and learns them along the stream.
    """
    generator = torch.Generator().manual_seed(seed)
    result = fit(rows.X_first, rows.y_first, num_inducing=settings.num_inducing)
    gp, known = result.gp, result.likelihood.gaussian_noise_variance
    assert known is not None
    noise = float(known)
    yield gp.predict(rows.X_test).mean
    if method in _OSVGP:
        beta = _OSVGP[method]
        yield from follow_rows(gp, noise, rows.X_stream, rows.y_stream, X_test=rows.X_test, marks=marks, beta=beta)
        return
    for row in range(len(rows.y_stream)):
        x, y = rows.X_stream[row : row + 1], rows.y_stream[row : row + 1]
        gp = absorb_row(gp, x, y, policy=method, noise_variance=noise, generator=generator)
        if row + 1 in marks:
            yield gp.predict(rows.X_test).mean


def _with_refits(
    rows: Regression, marks: list[int], *, method: str, seed: int, settings: ProteinSettings
) -> Iterator[Tensor]:
    """The same for our learner, which also learns hyperparameters along the stream, and makes its own first fit."""
    options = StreamOptions(most_points=settings.num_inducing, warmup=len(rows.y_first), half_life=None)
    learner, X_test = StreamLearner(rows.X_first.shape[1], options), rows.X_test.numpy()
    learner.learn_unordered(rows.X_first.numpy(), rows.y_first.numpy())
    yield torch.from_numpy(learner.predict(X_test).mean)
    X, y = rows.X_stream.numpy(), rows.y_stream.numpy()
    for row in range(len(y)):
        learner.learn(X[row : row + 1], y[row : row + 1])
        if row + 1 in marks:
            yield torch.from_numpy(learner.predict(X_test).mean)


STUDY = Study(
    name="protein",
    problems={"protein": "UCI protein, 45 730 rows with 9 inputs, one by one"},
    methods={
        "pivoted": "pivoted Cholesky",
        "printed": "pivoted Cholesky, weights as printed",
        "resample": "resampling",
        "fixed": "fixed points",
        "refits": "pivoted Cholesky, with refits",
        "osvgp": "O-SVGP",
        "osvgp-beta": "O-SVGP, divergences weighted by 1e-3",
    },
    settings=ProteinSettings,
    run=run,
    datasets=("protein",),
)
