"""Loading takes at most twice the file's size in memory, whatever it holds."""

import sys
from subprocess import run

import pytest
import torch
from gpytorch.kernels import RBFKernel

import streamgp as sg

# The high-water mark of resident memory is set back after what is loaded on first use, with a small file.
MEASURE = """
import sys
import streamgp as sg
from streamgp.errors import FileFormatError

def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

small, *others = sys.argv[1:]
sg.load(small)
for path in others:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = kilobytes("VmRSS")
    try:
        sg.load(path)
        outcome = "loaded"
    except FileFormatError:
        outcome = "refused"
    print(outcome, 1024 * (kilobytes("VmHWM") - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_a_large_belief_is_loaded_or_refused_in_twice_its_size(tmp_path, rewrite):
    small, large, bad = tmp_path / "small", tmp_path / "large", tmp_path / "bad"
    for path, m in ((small, 3), (large, 1200)):
        Z = torch.linspace(0.0, m, m, dtype=torch.float64).unsqueeze(-1)
        sg.SparseGP.from_prior(RBFKernel().double(), Z).save(path)
    bad.write_bytes(large.read_bytes())
    name = "content.sparse_process.whitened_root.npy"
    nan = torch.full((1,), torch.nan, dtype=torch.float64).numpy().tobytes()
    rewrite(bad, lambda _, parts: parts.update({name: parts[name][:-8] + nan}))
    # The refused one first: what it took is free again, and the loaded one may stay.
    done = run([sys.executable, "-c", MEASURE, small, bad, large], capture_output=True, text=True, check=True)
    (refused, most), (loaded, more) = (line.split() for line in done.stdout.splitlines())
    assert (refused, loaded) == ("refused", "loaded")
    assert int(most) <= 2 * bad.stat().st_size
    assert int(more) <= 2 * large.stat().st_size
