"""What exported files of C and NumPy compute is what the library computes."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean
from tests.support.exported import CBelief, NumpyBelief, compile_c, needs_compiler
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import FileFormatError, OptionError, SaveError, UnsupportedError
from streamgp.likelihoods import Bernoulli, Poisson
from streamgp.sites import SiteRule
from streamgp.testing.tolerances import approximation, judgement, rounding

DOUBLE, SINGLE = ("double", "float")
FILES = {
    "c": lambda gp, folder: CBelief(gp, folder),
    "c in single precision": lambda gp, folder: CBelief(gp, folder, precision=SINGLE),
    "numpy": NumpyBelief,
}
files = pytest.mark.parametrize(
    "file", [pytest.param(name, marks=needs_compiler if name != "numpy" else []) for name in FILES]
)
KERNELS = {
    "rbf": lambda: ScaleKernel(RBFKernel(ard_num_dims=3)),
    "matern 1/2": lambda: ScaleKernel(MaternKernel(0.5)),
    "matern 3/2": lambda: MaternKernel(1.5, ard_num_dims=3),
    "matern 5/2": lambda: ScaleKernel(MaternKernel(2.5, ard_num_dims=3)),
    "sum": lambda: ScaleKernel(
        ScaleKernel(RBFKernel(active_dims=(2, 0), ard_num_dims=2)) + MaternKernel(1.5, active_dims=(1,)) + RBFKernel()
    ),
}


def limits(file, scale=1.0):
    """Single precision loses what whitening magnifies, and the inverse factor is not the solution of a system."""
    return approximation(3e-5 if "single" in file else 1e-9, "model", scale=scale)


def random_gp(rng, kernel="matern 5/2", *, num_points=12, num_dims=3):
    module = KERNELS[kernel]().double()
    for name, parameter in module.named_parameters():
        if "lengthscale" in name:
            parameter.data.uniform_(0.0, 1.0, generator=rng)
    mean = ConstantMean().double()
    mean.initialize(constant=0.4)
    Z = 2.0 * torch.rand(num_points, num_dims, generator=rng, dtype=torch.float64)
    return sg.SparseGP.from_prior(module, Z, mean=mean)


def rows(rng, n, num_dims=3):
    X = 2.0 * torch.rand(n, num_dims, generator=rng, dtype=torch.float64)
    return X, torch.sin(3.0 * X).sum(-1) + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)


def assert_agrees(belief, gp, X, file):
    expected = gp.predict(X)
    found = torch.tensor([belief.predict(x) for x in X.numpy()], dtype=torch.float64)
    assert_close(found[:, 0], expected.mean, **limits(file))
    assert_close(found[:, 1], expected.variance, **limits(file))


@files
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_one_by_one_lead_to_what_the_library_learns_from_them_at_once(rng, tmp_path, kernel, file):
    gp = random_gp(rng, kernel)
    X, y = rows(rng, 40)
    start, _ = gp.absorb(X[:10], y[:10], noise_variance=0.2, inducing="keep")
    belief = FILES[file](start, tmp_path)
    W, _ = rows(rng, 5)
    assert_agrees(belief, start, W, file)
    noise = 0.1 + torch.rand(30, generator=rng, dtype=torch.float64)
    for x, value, variance in zip(X[10:].numpy(), y[10:], noise, strict=True):
        belief.absorb(x, value, variance)
    gp, _ = start.absorb(X[10:], y[10:], noise_variance=noise, inducing="keep")
    assert_agrees(belief, gp, W, file)
    belief.forget(0.3)
    assert_agrees(belief, gp.forget(0.3), W, file)
    back = sg.import_state(start, belief.state_out())
    assert_close(back.predict(W).covariance, gp.forget(0.3).predict(W).covariance, **limits(file))


@files
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_those_of_automatic_differentiation(rng, tmp_path, kernel, file):
    gp = random_gp(rng, kernel)
    X, y = rows(rng, 20)
    gp, _ = gp.absorb(X, y, noise_variance=0.1, inducing="keep")
    belief, W = FILES[file](gp, tmp_path), rows(rng, 4)[0].requires_grad_()
    prediction = gp.predict(W)
    gradients = [
        torch.autograd.grad(each.sum(), W, retain_graph=True)[0] for each in (prediction.mean, prediction.variance)
    ]
    for x, *expected in zip(W.detach().numpy(), prediction.mean, prediction.variance, *gradients, strict=True):
        for found, wanted in zip(belief.linearize(x), expected, strict=True):
            wanted = wanted.detach()
            assert_close(torch.as_tensor(np.asarray(found), dtype=wanted.dtype), wanted, **limits(file, scale=10.0))
    with pytest.raises(ValueError, match=r"must hold finite|code 1"):
        belief.linearize(np.array([0.0, np.nan, 1.0]))


@files
@pytest.mark.parametrize(
    ("likelihood", "targets", "learn"),
    [
        (Bernoulli("probit"), (0.0, 1.0), lambda belief, x, y: belief.absorb_class(x, y)),
        (Poisson(), (0.0, 2.0, 7.0, 60.0), lambda belief, x, y: belief.absorb_count(x, y)),
        (Poisson(0.3), (0.0, 2.0), lambda belief, x, y: belief.absorb_count(x, y, 0.3)),
    ],
)
def test_classes_and_counts_have_the_sites_of_the_library(rng, tmp_path, likelihood, targets, learn, file):
    gp = random_gp(rng)
    belief = FILES[file](gp, tmp_path)
    X, _ = rows(rng, 12)
    tight = SiteRule(tolerance=1e-10)
    for i, x in enumerate(X):
        y = targets[i % len(targets)]
        learn(belief, x.numpy(), y)
        gp, _ = gp.absorb(
            x.unsqueeze(0), torch.tensor([y], dtype=torch.float64), likelihood=likelihood, sites=tight, inducing="keep"
        )
    assert_agrees(belief, gp, X, file)


@files
def test_a_state_moves_to_another_device_and_back(rng, tmp_path, file):
    gp = random_gp(rng)
    first, second = FILES[file](gp, tmp_path), FILES[file](gp, tmp_path)
    X, y = rows(rng, 6)
    for x, value in zip(X.numpy(), y, strict=True):
        first.absorb(x, value, 0.1)
    second.state_in(first.state_out())
    assert second.state_out() == first.state_out() or file == "numpy"  # whose root is another one
    learned, _ = gp.absorb(X, y, noise_variance=0.1, inducing="keep")
    assert_agrees(second, learned, X, file)


@needs_compiler
def test_c_and_numpy_read_each_others_states(rng, tmp_path):
    gp = random_gp(rng)
    ours, theirs = CBelief(gp, tmp_path), NumpyBelief(gp, tmp_path)
    X, y = rows(rng, 3)
    ours.absorb(X[0].numpy(), y[0], 0.1)
    theirs.state_in(ours.state_out())
    theirs.absorb(X[1].numpy(), y[1], 0.1)
    ours.state_in(theirs.state_out())
    learned, _ = gp.absorb(X[:2], y[:2], noise_variance=0.1, inducing="keep")
    assert_agrees(ours, learned, X, "c")
    assert_agrees(theirs, learned, X, "numpy")


@needs_compiler
def test_beliefs_of_ten_devices_merge_to_that_of_one_which_saw_all(rng, tmp_path):
    gp = random_gp(rng)
    X, y = rows(rng, 200)
    states = []
    for part in range(10):
        belief = CBelief(gp, tmp_path, precision=DOUBLE)
        for x, value in zip(X[part::10].numpy(), y[part::10], strict=True):
            belief.absorb(x, value, 0.05)
        states.append(belief.state_out())
    merged = sg.merge([sg.import_state(gp, state) for state in states])
    learned, _ = gp.absorb(X, y, noise_variance=0.05, inducing="keep")
    assert_close(merged.predict(X).mean, learned.predict(X).mean, **judgement(absolute=1e-6))
    assert_close(merged.predict(X).covariance, learned.predict(X).covariance, **judgement(absolute=1e-6))


HOSTILE = [
    lambda belief, x: belief.predict(x * np.nan),
    lambda belief, x: belief.predict(x / 0.0),
    lambda belief, x: belief.absorb(np.where(np.arange(3) == 1, np.nan, x), 1.0, 0.1),
    *(lambda belief, x, y=y: belief.absorb(x, y, 0.1) for y in (np.nan, np.inf, -np.inf)),
    *(lambda belief, x, noise=noise: belief.absorb(x, 1.0, noise) for noise in (0.0, -1.0, np.nan, np.inf)),
    *(lambda belief, x, y=y: belief.absorb_class(x, y) for y in (2, -1)),
    *(lambda belief, x, y=y: belief.absorb_count(x, y) for y in (-1.0, 0.5, np.nan, np.inf)),
    *(lambda belief, x, e=e: belief.absorb_count(x, 1.0, e) for e in (0.0, -1.0, np.nan, np.inf)),
    *(lambda belief, x, factor=factor: belief.forget(factor) for factor in (0.0, -0.1, 1.1, np.nan, np.inf)),
    *(lambda belief, x, cut=cut: belief.state_in(belief.state_out()[:cut]) for cut in (0, 3, 30, -1)),
    lambda belief, x: belief.state_in(b"SGPC" + belief.state_out()[4:]),
    lambda belief, x: belief.state_in(belief.state_out()[:40] + b"\x01" + belief.state_out()[41:]),
]


@files
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_what_means_nothing_is_refused_and_changes_nothing(rng, tmp_path, file):
    belief = FILES[file](random_gp(rng), tmp_path)
    x = rng.initial_seed() % 7 * 0.1 + np.arange(3.0)
    belief.absorb(x, 0.7, 0.1)
    before = belief.state_out()
    for call in HOSTILE:
        with pytest.raises(ValueError, match=r"must|damaged|code [1-5]"):
            call(belief, x)
        assert belief.state_out() == before


@files
@pytest.mark.filterwarnings("ignore:overflow")
def test_extreme_rows_leave_the_belief_finite_and_proper(rng, tmp_path, file):
    gp = random_gp(rng)
    belief = FILES[file](gp, tmp_path)
    extremes = [0.0, 1.0, -3.0, 1e-30, 1e8, -1e15, 3e38, 1e30, 1e-38]
    numbers = np.random.default_rng(3)
    refused = 0
    for i in range(3000):
        x = numbers.choice(extremes, 3) if i % 3 else numbers.uniform(0.0, 2.0, 3)
        value, scale = float(numbers.choice(extremes)), float(abs(numbers.choice(extremes)))
        before = belief.state_out()
        try:
            if i % 4 == 0:
                belief.absorb_class(x, int(numbers.integers(2)))
            elif i % 4 == 1:
                belief.absorb_count(x, abs(np.floor(value)), max(scale, 1e-3))
            elif i % 50 == 2:
                belief.forget(numbers.choice([1.0, 0.9, 0.5, 1e-3]))
            else:
                belief.absorb(x, value, scale)
        except ValueError:
            refused += 1
            assert belief.state_out() == before
        mean, variance = belief.predict(numbers.uniform(0.0, 2.0, 3))
        assert np.isfinite(mean)
        assert 0.0 <= variance < 1e4
    assert 0 < refused < 2500
    assert torch.isfinite(sg.import_state(gp, belief.state_out()).predict(gp.inducing_points).covariance).all()


@needs_compiler
@pytest.mark.slow
def test_the_file_has_no_undefined_behavior_and_no_fault_of_memory(rng, tmp_path):
    gp, program = random_gp(rng, "sum"), tmp_path / "program.c"
    gp.export("c", tmp_path / "belief.c", precision=SINGLE)
    program.write_text(
        '#include <stdio.h>\n#include "belief.c"\n'
        "int main(void)\n{\n"
        "    static belief_state state, other;\n"
        "    static unsigned char bytes[BELIEF_STATE_BYTES];\n"
        "    const float odd[] = {0, 1, -1, 1e-30f, 1e30f, 3e38f, NAN, INFINITY, 0.5f, 2};\n"
        "    unsigned int seed = 1;\n    int i, k, codes = 0;\n    belief_start(&state);\n"
        "    for (i = 0; i < 20000; i++) {\n"
        "        float x[BELIEF_DIMENSIONS], gradient[2 * BELIEF_DIMENSIONS], a, b;\n"
        "        for (k = 0; k < BELIEF_DIMENSIONS; k++) {\n            seed = seed * 1664525u + 1013904223u;\n"
        "            x[k] = i % 2 ? odd[seed / 65536 % 10] : (float)(seed / 65536 % 100) / 50;\n        }\n"
        "        seed = seed * 1664525u + 1013904223u;\n"
        "        a = odd[seed / 65536 % 10], b = odd[seed / 1048576 % 10];\n"
        "        codes += belief_absorb(&state, x, a, b);\n        codes += belief_absorb_count(&state, x, a, b);\n"
        "        codes += belief_absorb_class(&state, x, (int)(seed % 3));\n"
        "        if (i % 100 == 0) codes += belief_forget(&state, a);\n"
        "        codes += belief_predict(&state, x, &a, &b);\n"
        "        codes += belief_linearize(&state, x, &a, &b, gradient, gradient + BELIEF_DIMENSIONS);\n"
        "        belief_state_out(&state, bytes);\n"
        "        if (belief_state_in(&other, bytes, sizeof bytes)) return 1;\n"
        "        bytes[seed % BELIEF_STATE_BYTES] ^= 1;\n"
        "        if (!belief_state_in(&other, bytes, sizeof bytes)) return 2;\n"
        "    }\n    return codes > 0 ? 0 : 3;\n}\n"
    )
    built = compile_c(
        program, "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", target=tmp_path / "program"
    )
    done = subprocess.run([built], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@needs_compiler
def test_declarations_alone_can_be_included_in_c_plus_plus(rng, tmp_path):
    random_gp(rng).export("c", tmp_path / "belief.c")
    text = (
        '#define BELIEF_DECLARATIONS_ONLY\n#include "belief.c"\nint f(belief_state *s) { belief_start(s); return 0; }\n'
    )
    (tmp_path / "other.c").write_text(text)
    subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "-c", "other.c"], cwd=tmp_path, check=True)


@needs_compiler
def test_near_points_cost_single_precision_no_digits_unless_kernels_are_single_too(rng, tmp_path):
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2)).double()
    kernel.base_kernel.lengthscale = 0.4
    gp = sg.SparseGP.from_prior(kernel, 2.0 * torch.rand(40, 2, generator=rng, dtype=torch.float64))
    beliefs = []
    for name, precision, options in (("d", DOUBLE, ()), ("f", SINGLE, ()), ("n", SINGLE, ("-DBELIEF_NARROW",))):
        (tmp_path / name).mkdir()
        beliefs.append(CBelief(gp, tmp_path / name, precision=precision, options=("-O2", *options)))
    X, y = (values.float().double() for values in rows(rng, 1000, 2))
    W = rows(rng, 50, 2)[0].float().double().numpy()
    for x, value in zip(X.numpy(), y.tolist(), strict=True):
        for belief in beliefs:
            belief.absorb(x, value, 0.1)
    exact, mixed, narrow = (np.array([belief.predict(x)[0] for x in W]) for belief in beliefs)
    assert abs(mixed - exact).max() < min(2e-6, 0.25 * abs(narrow - exact).max())


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("precision", [DOUBLE, SINGLE])
def test_a_hundred_thousand_rows_do_not_drift(rng, tmp_path, precision):
    gp = random_gp(rng, num_points=30, num_dims=3)
    belief, n = CBelief(gp, tmp_path, precision=precision, options=("-O3",)), 100_000
    X, y = rows(rng, n)
    for x, value in zip(X.numpy(), y.tolist(), strict=True):
        belief.absorb(x, value, 0.1)
    learned, W = gp, rows(rng, 50)[0]
    for X_part, y_part in zip(X.split(1000), y.split(1000), strict=True):
        learned, _ = learned.absorb(X_part, y_part, noise_variance=0.1, inducing="keep")
    expected = learned.predict(W)
    found = torch.tensor([belief.predict(x) for x in W.numpy()], dtype=torch.float64)
    error = max(float((found[:, 0] - expected.mean).abs().max()), float((found[:, 1] - expected.variance).abs().max()))
    assert error < {DOUBLE: 1e-12, SINGLE: 1e-5}[precision]
    covariance = sg.import_state(gp, belief.state_out()).whitened_covariance
    assert torch.linalg.eigvalsh(covariance).min() > 0


def test_the_numpy_file_imports_numpy_alone(rng, tmp_path):
    random_gp(rng).export("numpy", tmp_path / "belief.py")
    code = (
        "import sys, belief; belief.Belief().predict([0.0] * 3)\n"
        "assert not {'torch', 'scipy', 'streamgp', 'gpytorch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_what_a_file_cannot_evaluate_is_refused_with_a_sentence(rng, tmp_path):
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    path = tmp_path / "belief.c"
    for kernel, kind in ((RBFKernel() * MaternKernel(), "CombinedKernel"), (RBFKernel() + LinearKernel(), "Linear")):
        with pytest.raises(UnsupportedError, match=kind):
            sg.SparseGP.from_prior(kernel, X).export("c", path)
    with pytest.raises(UnsupportedError, match="is a LinearMean"):
        sg.SparseGP.from_prior(RBFKernel(), X, mean=LinearMean(2)).export("c", path)
    with pytest.raises(UnsupportedError, match="weights of features"):
        sg.SparseGP.from_features(LinearKernel(), X).export("c", path)
    with pytest.raises(UnsupportedError, match=r"a batch of shape \(3,\)"):
        sg.SparseGP.from_prior(RBFKernel(), X.expand(3, 4, 2)).export("c", path)
    gp = sg.SparseGP.from_prior(RBFKernel(), X)
    with pytest.raises(OptionError, match="'c', 'numpy', but is 'rust'"):
        gp.export("rust", path)
    with pytest.raises(OptionError, match="precision must be one of 'double', 'float'"):
        gp.export("c", path, precision="half")
    with pytest.raises(OptionError, match="name must be one that C takes"):
        gp.export("c", path, name="3d")
    with pytest.raises(SaveError, match="could not be written"):
        gp.export("c", tmp_path / "none" / "belief.c")
    assert not list(tmp_path.iterdir())


def test_states_that_are_damaged_or_of_another_model_are_refused_with_a_sentence(rng, tmp_path):
    gp = random_gp(rng)
    belief = NumpyBelief(gp, tmp_path)
    state = belief.state_out()
    with pytest.raises(FileFormatError, match="begins with 'SGPB'"):
        sg.import_state(gp, b"nothing of this kind")
    with pytest.raises(FileFormatError, match="of another GP"):
        sg.import_state(random_gp(rng), state)
    with pytest.raises(FileFormatError, match="has version 2"):
        sg.import_state(gp, state[:4] + b"\x02" + state[5:])
    for damaged in (state[:-1], state + b"x", state[:100] + bytes([state[100] ^ 4]) + state[101:]):
        with pytest.raises(FileFormatError, match="do not agree"):
            sg.import_state(gp, damaged)


def test_a_belief_that_is_sure_is_exported(rng, tmp_path):
    gp = random_gp(rng)
    delta = sg.SparseGP(gp.process.with_belief(gp.whitened_mean + 0.3, torch.zeros_like(gp.process.whitened_root)))
    belief = NumpyBelief(delta, tmp_path)
    back = sg.import_state(delta, belief.state_out())
    assert_close(back.whitened_mean, delta.whitened_mean, **rounding(torch.float64))
    assert back.whitened_covariance.abs().max() < 1e-50
