"""Edits of saved files: each loads and predicts, or is refused with an error of ours, quickly."""

import copy
import json
import random
import time
import zipfile

import pytest
import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import LinearKernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.means import LinearMean
from gpytorch.priors import GammaPrior

import streamgp as sg
from streamgp.errors import StreamGPError
from streamgp.storage import load, save

REPLACEMENTS = (
    None,
    True,
    -1,
    0,
    7,
    10**9,
    2**70,
    1e308,
    -0.5,
    "",
    "x",
    "content",
    [],
    [1],
    [[]],
    {},
    {"$": "float", "value": "nan"},
    {"$": "list", "items": []},
)
NUM_FAST = 200
# Of all kinds of files, with some room for a busy machine.
LONGEST = 2.0


def make_file(path):
    torch.manual_seed(0)
    kernel = ScaleKernel(
        RBFKernel(ard_num_dims=2, lengthscale_prior=GammaPrior(2.0, 1.0)) * PeriodicKernel()
        + MaternKernel(1.5, active_dims=(1,), lengthscale_constraint=Interval(0.1, 4.0))
    )
    gp = sg.SparseGP.from_prior(kernel + LinearKernel(), torch.rand(4, 2).double(), mean=LinearMean(2))
    gp = gp.condition(torch.rand(2, 2).double(), torch.ones(2).double(), likelihood=sg.likelihoods.Poisson())
    save(gp, path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(parts.pop("description.json")), parts


def places(node, path=()):
    """The paths to all entries of a description."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def edits(description):
    """All edits: each entry replaced, left out, or renamed."""
    for path in places(description):
        for kind in ("drop", "rename", *range(len(REPLACEMENTS))):
            yield path, kind


def edited(description, path, kind):
    changed = copy.deepcopy(description)
    owner = changed
    for key in path[:-1]:
        owner = owner[key]
    value = owner[path[-1]]
    if kind == "drop":
        del owner[path[-1]]
    elif kind == "rename":
        if isinstance(owner, dict):
            del owner[path[-1]]
            owner["other"] = value
        else:
            owner.append(value)
    else:
        owner[path[-1]] = copy.deepcopy(REPLACEMENTS[kind])
    return changed


def try_edits(tmp_path, chosen):
    description, parts = make_file(tmp_path / "original")
    X = torch.rand(3, 2).double()
    num_refused = 0
    chosen = chosen(list(edits(description)))
    for path, kind in chosen:
        with zipfile.ZipFile(tmp_path / "edited", "w") as archive:
            archive.writestr("description.json", json.dumps(edited(description, path, kind)))
            for name, content in parts.items():
                archive.writestr(name, content)
        start = time.process_time()
        try:
            value = load(tmp_path / "edited")
            if isinstance(value, sg.ConditionedGP):
                assert torch.isfinite(value.predict(X).variance).all()
        except StreamGPError:
            num_refused += 1
        except Exception as error:
            raise AssertionError(f"{path}, {kind}: {error!r}") from error
        assert time.process_time() - start < LONGEST, (path, kind)
    return num_refused, len(chosen)


@pytest.mark.slow
def test_some_edits_of_a_description_give_no_bare_error(tmp_path):
    num_refused, num = try_edits(tmp_path, lambda all_edits: random.Random(0).sample(all_edits, NUM_FAST))
    assert num == NUM_FAST
    assert num_refused > 0.7 * num  # the others change numbers, priors and texts that stay within their bounds


@pytest.mark.thorough
def test_all_edits_of_a_description_give_no_bare_error(tmp_path):
    num_refused, num = try_edits(tmp_path, lambda all_edits: all_edits)
    assert num_refused > 0.7 * num
