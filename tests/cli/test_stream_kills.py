import gzip
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "streamgp", "stream")


def write_lines(path, num_rows):
    """JSON lines with a number `y` and a class `kind`."""
    draw, lines = random.Random(0), []
    for _ in range(num_rows):
        x, z = draw.uniform(-2, 2), draw.uniform(-2, 2)
        f = math.sin(2 * x) + 0.3 * z
        kind = "low" if f < -0.4 else "high" if f > 0.4 else "middle"
        lines.append(json.dumps({"x": x, "z": z, "y": f + draw.gauss(0, 0.1), "kind": kind}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def forked_kills(source, directory, num_kills, **options):
    script = Path(__file__).with_name("kill_repeatedly.py")
    done = subprocess.run(
        [sys.executable, script, source, directory, str(num_kills), json.dumps(options)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["kills"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_stream_killed_at_random_moments_ends_as_one_that_was_not(tmp_path):
    source = write_lines(tmp_path / "data.jsonl", 90)
    options = {
        "target": "y",
        "features": ["x", "z"],
        "num_inducing": 5,
        "warmup": 8,
        "refit": 50,
        "checkpoint_every": 3,
    }
    assert forked_kills(source, tmp_path, 10, **options) >= 10


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_blocks_of_classes_with_bad_rows_killed_at_random_moments_end_as_if_not(tmp_path):
    lines = write_lines(tmp_path / "data.jsonl", 50).read_text(encoding="utf-8").splitlines()
    lines[20:20] = ["{", '{"x": null}']
    source = tmp_path / "data.gz"
    source.write_bytes(gzip.compress("\n".join(lines).encode()))
    options = {"target": "kind", "features": ["x", "z"], "is_bad_skipped": True, "block": 2, "checkpoint_every": 4}
    options |= {"num_inducing": 5, "warmup": 8, "refit": "never"}
    assert forked_kills(source, tmp_path, 6, **options) >= 6


@pytest.mark.slow
def test_the_command_itself_survives_a_kill_with_standard_input(tmp_path):
    source = write_lines(tmp_path / "data.jsonl", 40)
    options = [
        "-",
        "--target",
        "y",
        "--features",
        "x,z",
        "--num-inducing",
        "4",
        "--warmup",
        "4",
        "--quiet",
        "--checkpoint-every",
        "2",
    ]
    with source.open("rb") as stream:
        subprocess.run([*COMMAND, *options, "--output", tmp_path / "whole"], stdin=stream, check=True)
    output, checkpoint = tmp_path / "killed", tmp_path / "keep"
    arguments = [*COMMAND, *options, "--output", output, "--checkpoint", checkpoint, "--resume"]
    with source.open("rb") as stream:
        process = subprocess.Popen(arguments, stdin=stream)
    while process.poll() is None and (not output.exists() or output.stat().st_size < 3_000):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    with source.open("rb") as stream:
        subprocess.run(arguments, stdin=stream, check=True)
    assert output.read_bytes() == (tmp_path / "whole").read_bytes()
