import numpy as np
import pandas as pd
import pytest
import torch

dask_dataframe = pytest.importorskip("dask.dataframe", reason="needs the extra streamgp[dask]")

import streamgp as sg  # noqa: E402
from streamgp.errors import ArgumentTypeError, OptionError  # noqa: E402
from streamgp.integrations.dask import DaskKeyedLearner  # noqa: E402
from streamgp.streams.keyed import KeyedLearner  # noqa: E402
from streamgp.testing.tolerances import rounding  # noqa: E402

# Of keys that have nothing in common with the inputs.
pytestmark = pytest.mark.filterwarnings("ignore:The fit found nothing but noise")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3.0, 3.0, size=60)
    return pd.DataFrame({"sensor": [f"s{i % 7}" for i in range(60)], "x": x, "y": np.sin(x) + np.arange(60) % 7})


@pytest.fixture(scope="module")
def empty(table):
    X, y = (torch.tensor(table[names].to_numpy()) for names in (["x"], "y"))
    return KeyedLearner.from_fit(sg.fit(X, y, num_inducing=5, max_iterations=3))


def test_partitions_know_what_one_learner_of_all_keys_knows(client, table, empty, tmp_path):
    lazy = dask_dataframe.from_pandas(table, npartitions=3)
    ours = DaskKeyedLearner(empty, num_partitions=3, client=client).learn(lazy, key="sensor", target="y")
    one = empty.learn(table["sensor"].tolist(), table[["x"]].to_numpy(), table["y"].to_numpy())
    assert ours.num_keys == 7
    keys, X = [*table["sensor"][:9], "never seen"], table[["x"]].to_numpy()[:10]
    for mine, theirs in zip(ours.predict(keys, X), one.predict(keys, X), strict=True):
        np.testing.assert_allclose(mine, theirs.numpy(), **rounding(torch.float64, condition=1e3))
    torch.testing.assert_close(ours.of("s3").process.whitened_mean, one.of("s3").process.whitened_mean)
    ours.save(tmp_path / "keys")
    saved = [sg.load(path) for path in sorted((tmp_path / "keys").iterdir())]
    assert sorted(key for each in saved for key in each.keys) == sorted(one.keys)


def test_what_cannot_be_learned_is_refused(client, table, empty):
    learner = DaskKeyedLearner(empty, num_partitions=2, client=client)
    with pytest.raises(ArgumentTypeError, match=r"dask\.dataframe, but is a DataFrame"):
        learner.learn(table, key="sensor", target="y")
    with pytest.raises(OptionError, match="no column 'z'"):
        learner.learn(dask_dataframe.from_pandas(table, npartitions=1), key="sensor", target="z")
    with pytest.raises(ArgumentTypeError, match="without keys"):
        DaskKeyedLearner(empty.learn(["a"], [[0.0]], [1.0]), client=client)
