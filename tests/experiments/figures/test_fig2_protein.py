import pytest

from streamgp.experiments.figures.fig2_protein import FIGURE


def outcomes(*, middle=0.05, end=0.05):
    """Resampling is worse than the others by so much in the middle and at the end of the stream."""

    def trial(seed, method):
        gap = method == "resample"
        start = 0.8 + 0.01 * seed
        return {"num_seen": [0, 5, 10], "rmse": [start, start + gap * middle * (1 + 0.1 * seed), start + gap * end]}

    return {("protein", method): [trial(seed, method) for seed in range(3)] for method in FIGURE.methods}


@pytest.mark.parametrize(
    ("changes", "verdict"), [({}, "reproduced"), ({"end": 0.0}, "partly"), ({"middle": -0.1, "end": -0.05}, "not")]
)
def test_the_verdict_follows_the_numbers(to_records, changes, verdict):
    judgement = FIGURE.judge(to_records(outcomes(**changes)))
    assert judgement.verdict == verdict
    assert "Fixed points less pivoted Cholesky at the end" in judgement.evidence


def test_it_is_drawn_and_described(to_records, check_shown):
    check_shown(FIGURE, to_records(outcomes()))
