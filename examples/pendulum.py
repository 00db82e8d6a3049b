"""A pendulum whose model is learned while it is controlled, by a file that needs NumPy alone.

The controller knows a frictionless pendulum without its load. What it does not know, the friction and the load, is a
Gaussian process of angle and speed, which learns from each measured acceleration. Run it: python pendulum.py [PICTURE]
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from matplotlib.figure import Figure

import streamgp as sg

STEP, NUM_STEPS, NOISE, GRAVITY = 0.01, 2000, 0.3, 9.81
STIFFNESS, DAMPING = 20.0, 5.0


def export_belief(folder: Path):
    """Write a belief that knows nothing yet, and import it as a controller would."""
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=2)).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = 50.0, torch.tensor([[1.0, 1.5]])
    grid = torch.cartesian_prod(torch.linspace(-1.5, 1.5, 6), torch.linspace(-5.0, 5.0, 12)).double()
    sg.SparseGP.from_prior(kernel, grid).export("numpy", folder / "residual.py")
    spec = importlib.util.spec_from_file_location("residual", folder / "residual.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Belief()


def unknown(angle, speed):
    """What the controller does not know of the acceleration: dry and viscous friction, and a load."""
    return -0.4 * speed - 2.5 * np.tanh(20.0 * speed) - 4.0 * np.sin(angle)


def control(belief, *, learns: bool, rng: np.random.Generator) -> np.ndarray:
    """Follow a swing for some seconds; returns the error of the angle at each step."""
    angle, speed, errors = 0.0, 0.0, []
    for step in range(NUM_STEPS):
        time = step * STEP
        wanted = np.array([np.sin(2 * time), 2 * np.cos(2 * time), -4 * np.sin(2 * time)])
        state = np.array([angle, speed])
        mean, _ = belief.predict(state) if learns else (0.0, 0.0)
        torque = wanted[2] + DAMPING * (wanted[1] - speed) + STIFFNESS * (wanted[0] - angle)
        torque += GRAVITY * np.sin(angle) - mean
        acceleration = torque - GRAVITY * np.sin(angle) + unknown(angle, speed)
        if learns:
            measured = acceleration + NOISE * rng.standard_normal()
            belief.absorb(state, measured - torque + GRAVITY * np.sin(angle), NOISE**2)
        speed += STEP * acceleration
        angle += STEP * speed
        errors.append(angle - np.sin(2 * (time + STEP)))
    return np.array(errors)


def main(picture: str | None) -> None:
    """Control it twice, and draw what came of it."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        belief = export_belief(Path(folder))
    known, learned = control(belief, learns=False, rng=rng), control(belief, learns=True, rng=rng)
    late = slice(NUM_STEPS // 2, None)
    print(f"Largest error of the angle in the second half: {abs(known[late]).max():.3f} without learning, ", end="")
    print(f"{abs(learned[late]).max():.3f} with it.")
    if picture is None:
        return
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    times = STEP * np.arange(NUM_STEPS)
    left.plot(times, known, color="gray", label="as it was known")
    left.plot(times, learned, color="tab:blue", label="learned on the way")
    left.set(xlabel="seconds", ylabel="error of the angle", title="A swing that is followed")
    speeds = np.linspace(-2.5, 2.5, 200)
    mean, variance = np.array([belief.predict(np.array([0.0, speed])) for speed in speeds]).T
    right.fill_between(speeds, mean - 2 * variance**0.5, mean + 2 * variance**0.5, color="tab:blue", alpha=0.2, lw=0)
    right.plot(speeds, mean, color="tab:blue", label="learned, ± 2 deviations")
    right.plot(speeds, unknown(0.0, speeds), "--", color="black", label="true")
    right.set(xlabel="speed", ylabel="acceleration", title="Friction at the lowest point")
    left.legend(frameon=False)
    right.legend(frameon=False)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
