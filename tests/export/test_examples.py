"""The examples of beliefs that leave Python."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from gpytorch.kernels import RBFKernel

import streamgp as sg
from streamgp.testing.tolerances import judgement, within

EXAMPLES = Path(__file__).parents[2] / "examples"


def imported(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_pendulum_is_controlled_better_by_a_model_that_is_learned_on_the_way(tmp_path):
    picture = tmp_path / "pendulum.png"
    command = [sys.executable, str(EXAMPLES / "pendulum.py"), str(picture)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    known, learned = float(said[said.index("half:") + 1]), float(said[said.index("learning,") + 1])
    assert learned < 0.1 * known
    assert picture.stat().st_size > 10_000


def test_casadi_finds_the_highest_mean_by_its_jacobian(tmp_path):
    casadi = pytest.importorskip("casadi", reason="casadi is not installed")
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.5
    X = torch.cartesian_prod(*2 * [torch.linspace(0.0, 1.0, 6, dtype=torch.float64)])
    gp, _ = sg.SparseGP.from_prior(kernel, X).absorb(
        X, -(X - 0.4).square().sum(-1), noise_variance=1e-4, inducing="keep"
    )
    gp.export("numpy", tmp_path / "drift.py")
    example = imported(EXAMPLES / "casadi_function.py")
    moments, x = example.GaussianProcess(imported(tmp_path / "drift.py").Belief(), 2), casadi.MX.sym("x", 2)
    options = {**example.LIMITED_MEMORY, "ipopt.print_level": 0, "print_time": 0}
    found = casadi.nlpsol("solver", "ipopt", {"x": x, "f": -moments(x)[0]}, options)(x0=[0.8, 0.2], lbx=0, ubx=1)
    assert found["x"].full().ravel() == pytest.approx([0.4, 0.4], **within(judgement(absolute=0.02)))
