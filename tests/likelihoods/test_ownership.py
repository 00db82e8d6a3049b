"""What is known of a likelihood, it says itself: code outside does not ask which class it is."""

import re
from pathlib import Path

import streamgp
from streamgp import likelihoods

ROOT = Path(streamgp.__file__).parent
# Code that was being rewritten when the rule came, and one study that is of a single likelihood.
STILL_ASKING = {
    "experiments/studies/conditioning.py",
    "loops/exact_surrogate.py",
    "loops/surrogate.py",
    "streaming/hyperparameters.py",
    "streaming/keyed.py",
    "streaming/model.py",
    "streaming/observing.py",
    "streaming/prediction.py",
    "streaming/refitting.py",
    "streaming/regressor.py",
    "streaming/rows.py",
    "streaming/settings.py",
    "training/finishing.py",
    "training/fit.py",
    "training/full_batch.py",
    "training/minibatch.py",
    "training/sharding/climbing.py",
    "training/sharding/gaussian.py",
    "training/starting.py",
}


def asking_files():
    names = [name for name in likelihoods.__all__ if name[0].isupper() and not name.startswith("Abstract")]
    pattern = re.compile(rf"(isinstance\(|type\(\w+\) is )[^\n]*\b({'|'.join(names)}|WrappedLikelihood)\b")
    return {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "likelihoods" not in path.parts[-2:] and pattern.search(path.read_text())
    }


def test_no_further_file_asks_which_class_a_likelihood_is():
    assert asking_files() <= STILL_ASKING
