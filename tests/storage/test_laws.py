"""Whatever class of the package reaches a file comes back with the same contents, whatever they are."""

import dataclasses
import random
import types
from collections.abc import Hashable, Mapping
from importlib import import_module
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
import pytest
import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import LaplaceLikelihood
from gpytorch.means import ConstantMean, Mean
from jaxtyping import AbstractArray
from torch import Tensor

from streamgp import likelihoods
from streamgp.acquisition import Band, Hotspots, LevelSet, Map, Thompson
from streamgp.acquisition.abstract_rule import AbstractRule
from streamgp.acquisition.goals import AbstractGoal
from streamgp.conditioning import SparseGP
from streamgp.evidence import Evidence, average
from streamgp.gp import Prior, SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.optimizers import TurboOptimizer
from streamgp.storage import load, register, save
from streamgp.storage.registry import StoredClass, registered
from streamgp.streams.drift import DriftWatch

PACKAGES = (
    *("storage", "conditioning", "training", "models", "acquisition", "loops", "optimizers", "pools"),
    *("streams.preprocessing", "streams.saving", "streams.keyed", "cli.stream.checkpoints"),
)
for _package in PACKAGES:
    import_module(f"streamgp.{_package}")

LIKELIHOODS = {
    "likelihoods.Bernoulli": lambda: likelihoods.Bernoulli("logit"),
    "likelihoods.Binomial": lambda: likelihoods.Binomial(total_count=torch.tensor([3.0, 4.0])),
    "likelihoods.Softmax": lambda: likelihoods.Softmax(3),
    "likelihoods.Gaussian": lambda: likelihoods.Gaussian(0.3, is_learned=False),
    "likelihoods.WrappedLikelihood": lambda: likelihoods.from_gpytorch(LaplaceLikelihood()),
}


GOALS = {
    "acquisition.LevelSet": lambda: LevelSet(0.75, of="latent"),
    "acquisition.Band": lambda: Band(-1.5, 1e300),
    "acquisition.Hotspots": lambda: Hotspots(0.6, is_clipped=False),
}


# The first is never stored; of whole loops, those of tests/loops/test_storage.py are.
NOT_MADE = (DriftWatch, TurboOptimizer)


class Contents:
    """Random contents for annotations; axes of the same letter have the same size."""

    def __init__(self, seed, *, is_finite=False):
        self.is_finite = is_finite
        self.draw = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.sizes = {}
        self.batch = tuple(self.draw.choices((1, 2, 3), k=self.draw.randrange(3)))

    def of(self, hint):
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return self.of(self.draw.choice([each for each in arguments if each not in NOT_MADE]))
        if origin is Literal:
            return self.draw.choice(arguments)
        if origin is tuple and arguments[-1] is Ellipsis:
            return tuple(self.of(arguments[0]) for _ in range(self.draw.choice((0, 1, 2, 100))))
        if origin is tuple:
            return tuple(map(self.of, arguments))
        if origin is list:
            return [self.of(arguments[0]) for _ in range(self.draw.randrange(3))]
        if origin is not None and issubclass(origin, Mapping):
            return {self.of(arguments[0]): self.of(arguments[1]) for _ in range(self.draw.randrange(3))}
        if hint is None or hint is type(None):
            return None
        if isinstance(hint, type) and issubclass(hint, AbstractArray):
            return self.tensor(hint).numpy() if hint.array_type is np.ndarray else self.tensor(hint)
        return self.object(hint)

    def tensor(self, hint):
        shape = []
        for axis in hint.dim_str.split():
            if axis.startswith("*"):
                shape += self.batch
            elif axis.isdigit():
                shape.append(int(axis))
            else:
                shape.append(self.sizes.setdefault(axis, self.draw.choice((1, 2, 3))))
        kind = hint.dtypes[0]
        if "bool" in kind:
            return torch.rand(shape, generator=self.generator) > 0.5
        if "float" in kind:
            return torch.randn(shape, generator=self.generator, dtype=torch.float64)
        return torch.randint(9, shape, generator=self.generator)

    def object(self, hint):
        simple = {
            int: lambda: self.draw.randrange(10**6),
            float: lambda: self.draw.choice((self.draw.gauss(0, 1), 1e300 if self.is_finite else float("inf"), 3)),
            str: lambda: self.draw.choice(("", "Matérn", "a\nb")),
            bool: lambda: self.draw.random() < 0.5,
            Any: lambda: ("a", 1.5, None),
            Hashable: lambda: self.draw.choice(("a", 3, True, None)),
            Kernel: lambda: ScaleKernel(RBFKernel()).double(),
            Mean: lambda: ConstantMean().double(),
            AbstractLikelihood: lambda: likelihoods.StudentT(4.0, 0.5),
            SparseGP: lambda: SparseGP(self.process()),
            SparseProcess: self.process,
            Prior: lambda: self.process().prior,
            AbstractGoal: lambda: self.draw.choice((Map, *GOALS.values()))(),
            AbstractRule: Thompson,
            Evidence: lambda: average(torch.randn(4, 2, generator=self.generator, dtype=torch.float64), list("abca")),
        }
        if hint in simple:
            return simple[hint]()
        found = [each for each in registered() if each.cls is hint]
        assert found, f"no random contents for {hint}"
        return self.make(found[0])

    def process(self):
        Z = torch.randn(3, 2, generator=self.generator, dtype=torch.float64)
        prior = Prior.snapshot(ScaleKernel(RBFKernel()), ConstantMean(), like=Z)
        return SparseProcess.from_prior(prior, Z, jitter=1e-6)

    def make(self, stored):
        if stored.cls in (SparseGP, SparseProcess, Prior, Evidence):
            return self.object(stored.cls)
        if stored.name in LIKELIHOODS:
            return LIKELIHOODS[stored.name]()
        if stored.name in GOALS:
            return GOALS[stored.name]()
        if stored.name.startswith("likelihoods."):
            return stored.cls()
        inner = Contents(self.draw.randrange(10**6), is_finite=stored.check is not None)
        return stored.cls(**{name: inner.of(stored.hints[name]) for name in _field_names(stored)})


def _field_names(stored: StoredClass):
    if dataclasses.is_dataclass(stored.cls):
        return [each.name for each in dataclasses.fields(stored.cls)]
    return list(stored.cls._fields)


def assert_same(first, second, where="value"):
    assert type(first) is type(second), where
    if isinstance(first, Tensor):
        assert first.dtype == second.dtype, where
        assert torch.equal(first, second), where
    elif isinstance(first, torch.nn.Module):
        for name, value in first.state_dict().items():
            assert_same(value, second.state_dict()[name], f"{where}.{name}")
    elif dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            assert_same(getattr(first, field.name), getattr(second, field.name), f"{where}.{field.name}")
    elif isinstance(first, tuple | list):
        assert len(first) == len(second), where
        for i, (one, other) in enumerate(zip(first, second, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    elif isinstance(first, np.ndarray):
        assert np.array_equal(first, second), where
    elif isinstance(first, Mapping) and any(isinstance(each, Tensor) for each in first.values()):
        assert first.keys() == second.keys(), where
        for name, value in first.items():
            assert_same(value, second[name], f"{where}.{name}")
    else:
        assert first == second, where


# Classes that refuse most random contents, or hold those that do. tests/loops/test_storage.py and those of streams and
# their checkpoints save them.
CHECKED = {
    "acquisition.RegionRules",
    "acquisition.TrustRegion",
    "acquisition.KnowledgePerCost",
    "batch.InputWarp",
    "cli.Checkpoint",
    "keyed.KeyedLearner",
    "loops.Categorical",
    "loops.Constraint",
    "loops.Integer",
    "loops.LinearConstraint",
    "loops.LoopSettings",
    "loops.LoopState",
    "loops.Objective",
    "loops.Observations",
    "loops.Ordinal",
    "loops.ParameterSpace",
    "loops.Real",
    "loops.SurrogateSettings",
    "loops.Training",
    "streams.StreamOptions",
    "stream.StreamModel",
    "stream.StreamTicket",
    "stream.RowTicket",
}
CLASSES = [
    each
    for each in registered()
    if each.cls.__module__.startswith("streamgp.")
    and (dataclasses.is_dataclass(each.cls) or issubclass(each.cls, tuple))
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "stored", [each for each in CLASSES if each.name not in CHECKED], ids=lambda stored: stored.name
)
def test_random_contents_come_back(tmp_path, stored):
    for seed in range(5):
        value = Contents(seed).make(stored)
        save(value, tmp_path / "a")
        assert_same(value, load(tmp_path / "a"))


@pytest.mark.parametrize("stored", CLASSES, ids=lambda stored: stored.name)
def test_every_field_is_saved_and_expected(stored):
    fields = set(_field_names(stored))
    if stored.cls is Prior:
        fields = {"kernel", "mean", "zero"}
    assert fields == stored.allowed
    assert stored.required <= fields
    assert fields <= stored.hints.keys()


def test_a_new_field_is_saved_without_a_word_more(tmp_path):
    @register(name="test.Grown")
    @dataclasses.dataclass(frozen=True)
    class Grown:
        old: int
        new: tuple[int, ...] = ()

    save(Grown(1, (2, 3)), tmp_path / "a")
    assert load(tmp_path / "a") == Grown(1, (2, 3))
