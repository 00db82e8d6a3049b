"""Trust regions that a tree places, as a rule of any loop over a box."""

import pytest
import torch

import streamgp as sg
from paper.lamcts import PartitionSettings, TreeSearch
from paper.lamcts.space_partition import choose_leaf
from streamgp.acquisition import RegionRules, Thompson, TrustRegion
from streamgp.errors import UnsupportedError

BOX = [(0.0, 1.0)] * 3
PARTITION = PartitionSettings(leaf_size=5, num_start=4)
REGION = TrustRegion(Thompson(50), RegionRules(failure_tolerance=2, min_length=0.6))


def bowl(X):
    return -(X - 0.3).square().sum(-1)


def make(partition=PARTITION, **options):
    rule = TreeSearch(REGION, partition)
    return sg.Optimizer(BOX, acquisition=rule, num_initial=8, num_inducing=12, **options)


def told(optimizer, num_steps, q=4):
    for _ in range(num_steps):
        X = optimizer.ask(q)
        optimizer.tell(X, bowl(X))
    return optimizer


def test_a_run_starts_from_the_samples_of_the_best_leaf_and_new_points_in_it():
    optimizer = told(make(), 2)
    X = optimizer.ask(4)  # the design of the first trust region
    memory, rule = optimizer.inspect(refit=False).memory, optimizer.inspect(refit=False).rule.innermost
    assert rule.run(memory) == 1
    assert 0 < len(memory.members) <= 8
    y = bowl(optimizer.X)
    assert int(y.argmax()) in memory.members.tolist()
    assert memory.regions.region.best == pytest.approx(float(y.max()))
    assert rule.num_initial(memory, 8) == 4 + len(memory.members)
    assert rule.in_run(memory, 8).nonzero().squeeze(-1).tolist() == sorted(memory.members.tolist())
    # The leaf is that of a tree of these samples, and its new points are inside.
    seed = optimizer._settings.seed
    leaf = choose_leaf(rule.tree(optimizer.X.numpy(), y.numpy(), seed=seed), 0.1 * float(y.max() - y.min()))
    assert leaf.contains(X.numpy()).all()
    optimizer.tell(X, bowl(X))
    assert rule.in_run(optimizer.inspect(refit=False).memory, 12)[8:].all()


def test_samples_of_the_leaf_are_forgotten_if_asked_to():
    optimizer = told(make(PartitionSettings(leaf_size=5, num_start=4, keeps_samples=False)), 2)
    optimizer.ask(4)
    memory, rule = optimizer.inspect(refit=False).memory, optimizer.inspect(refit=False).rule.innermost
    assert not rule.in_run(memory, 8).any()
    assert rule.num_initial(memory, 8) == 4


def test_a_design_gives_out_what_it_has_left():
    optimizer = make()
    assert [len(optimizer.ask(5)) for _ in range(2)] == [5, 3]
    assert len(optimizer.ask(2)) == 2  # nothing is known yet, so the space's own design goes on


@pytest.mark.slow
def test_a_new_run_begins_when_a_region_is_given_up_and_a_file_goes_on_with_it(tmp_path):
    optimizer = told(make(), 6)
    rule = optimizer.inspect(refit=False).rule.innermost
    assert rule.run(optimizer.inspect(refit=False).memory) >= 2
    optimizer.ask(1)
    optimizer.save(tmp_path / "loop")
    other = sg.load(tmp_path / "loop")
    assert other.inspect(refit=False).rule.innermost == rule
    for _ in range(3):
        assert torch.equal(told(optimizer, 1).X, told(other, 1).X)


def test_other_spaces_are_refused():
    optimizer = sg.Optimizer({"a": sg.Integer(1, 5)}, acquisition=TreeSearch())
    with pytest.raises(UnsupportedError, match="continuous space"):
        optimizer.ask()
