"""Files whose contents were changed: refused with a sentence, or as good as any other."""

import io
import json
import random
import zipfile

import numpy as np
import pytest
import torch

import streamgp as sg
from streamgp.errors import StreamGPError
from streamgp.streams.keyed import KeyedLearner

X = np.random.default_rng(5).random((40, 2))
Y = np.sin(6 * X[:, 0]) + X[:, 1]
T = torch.from_numpy(X)


def fit():
    return sg.fit(T, torch.from_numpy(Y), num_inducing=6, max_iterations=3)


def told():
    optimizer = sg.Optimizer([(0.0, 1.0), (0.0, 1.0)], seed=1)
    optimizer.tell(X[:6], Y[:6])
    optimizer.ask(1)
    return optimizer


def labelled():
    learner = sg.PoolLearner(X, likelihood="bernoulli", seed=1)
    learner.tell(np.arange(0, 40, 4), Y[::4] > 1.0)
    return learner


def streamed(kind, targets):
    return kind(warmup=20, refit="never").partial_fit(X, targets)


def use_gp(gp):
    gp.predict(T).variance, gp.absorb(T[:3], torch.from_numpy(Y[:3]), noise_variance=0.1)


def use_optimizer(optimizer):
    optimizer.predict(X[:2])
    optimizer.ask(1)
    optimizer.tell(X[:1], Y[:1])


def use_pool(learner):
    learner.predict()
    learner.ask(1)


def use_stream(model):
    is_regressor = isinstance(model, sg.StreamingGPRegressor)
    model.predict(X)
    for row in range(4):
        model.partial_fit(X[row : row + 1], Y[row : row + 1] if is_regressor else ["high"])
    model.predict(X), model.score_report()


def use_keyed(learner):
    learner.predict(["a", "b"], X[:2])
    learner.learn(["a"] * 3, X[:3], Y[:3])


CASES = {
    "gp": (lambda: fit().gp, use_gp),
    "optimizer": (told, use_optimizer),
    "pool": (labelled, use_pool),
    "regressor": (lambda: streamed(sg.StreamingGPRegressor, Y), use_stream),
    "classifier": (lambda: streamed(sg.StreamingGPClassifier, np.where(Y > 1.0, "high", "low")), use_stream),
    "keyed": (lambda: KeyedLearner.from_fit(fit()).learn(["a", "b"] * 20, X, Y), use_keyed),
}


def places(node, path=()):
    """All values of a description, with the way to them."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*path, key), child
        yield from places(child, (*path, key))


def change_array(draw, array):
    """Another array: with other numbers, another shape, or of another type."""
    kind, array = draw.choice(("number", "all numbers", "rows", "columns", "order", "type")), array.copy()
    value = draw.choice((-1, 0, 10**9)) if array.dtype.kind in "iub" else draw.choice((np.nan, np.inf, -1, 0, 1e30))
    if array.dtype.kind == "U" or not array.size or kind == "type":
        return array.astype(draw.choice(("f4", "f8", "i8"))) if array.dtype.kind != "U" else array[:0]
    if kind == "number":
        array.flat[draw.randrange(array.size)] = value
    elif kind == "all numbers" or not array.ndim:
        array[...] = value
    elif kind == "rows":
        array = draw.choice((array[1:], np.concatenate([array, array])))
    else:
        array = array[..., :-1] if kind == "columns" else array.T.copy()
    return array


def change_description(draw, content):
    found = [(path, value) for path, value in places(content) if not isinstance(value, dict)]
    path, value = draw.choice(found)
    node = content
    for key in path[:-1]:
        node = node[key]
    if isinstance(value, list):
        node[path[-1]] = draw.choice((value[:-1], [*value, *value[:1]]))
    else:
        node[path[-1]] = draw.choice((0, -1, 1, 2, 10**6, 1e300, -1.5, "x", None, True, [], {}))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::streamgp.errors.StreamGPWarning")
@pytest.mark.parametrize("num_files", [5, pytest.param(400, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", CASES)
def test_a_file_whose_contents_were_changed_is_refused_or_can_be_used(name, num_files, tmp_path):
    make, use = CASES[name]
    value, path, changed = make(), tmp_path / "value", tmp_path / "changed"
    value.save(path) if hasattr(value, "save") else sg.storage.save(value, path)
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    for seed in range(num_files):
        draw, written = random.Random(f"{name} {seed}"), dict(parts)
        arrays = [part for part in parts if part.endswith(".npy")]
        if draw.random() < 0.5:
            part, file = draw.choice(arrays), io.BytesIO()
            np.save(file, change_array(draw, np.load(io.BytesIO(parts[part]))))
            written[part] = file.getvalue()
        else:
            description = json.loads(parts["description.json"])
            change_description(draw, description["content"])
            written["description.json"] = json.dumps(description).encode()
        with zipfile.ZipFile(changed, "w") as archive:
            for part, content in written.items():
                archive.writestr(part, content)
        try:
            use(sg.load(changed))
        except StreamGPError:
            pass
        except Exception as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}")
