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
from typer.testing import CliRunner

import streamgp as sg
from streamgp.cli.app import app
from streamgp.cli.locks import locked
from streamgp.cli.stream.options import StreamOptions
from streamgp.cli.stream.streaming import run_stream
from streamgp.errors import SaveError

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


def forked_kills(*jobs):
    """Kill streams, each a source, a directory, the least number of kills and options; returns how many were needed."""
    script = Path(__file__).with_name("kill_repeatedly.py")
    done = subprocess.run(
        [sys.executable, script, json.dumps(jobs, default=str)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_table(path, num_rows):
    """A date, a text, a number that may be missing, and a target `y` that may be."""
    lines = ["when,city,load,y"]
    for i in range(num_rows):
        when, city = f"2024-03-{1 + i // 4:02d} {6 * (i % 4):02d}:00", ("Oslo", "Bergen")[i % 2]
        lines.append(f"{when},{city},{'' if i % 7 == 3 else i % 5},{'' if i % 9 == 8 else i % 5 - i % 2}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def wait_for_lines(process, path, num_lines):
    """Wait until a process that runs has written lines."""
    while not path.exists() or path.read_bytes().count(b"\n") < num_lines:
        assert process.poll() is None
        time.sleep(0.01)


NUMBERS = {
    "target": "y",
    "features": ["x", "z"],
    "num_inducing": 5,
    "warmup": 8,
    "refit": 50,
    "checkpoint_every": 3,
}
TABLE = {
    "target": "y",
    "block": 2,
    "num_inducing": 4,
    "warmup": 6,
    "refit": "never",
    "drift_detector": "page_hinkley",
    "checkpoint_every": 4,
}
CLASSES = {
    "target": "kind",
    "features": ["x", "z"],
    "is_bad_skipped": True,
    "block": 2,
    "checkpoint_every": 4,
    "num_inducing": 5,
    "warmup": 8,
    "refit": "never",
}


def jobs_of_all_sources(directory, num_kills):
    """A table with dates, texts and a detector of changes, compressed classes with bad rows, and standard input."""
    numbers, classes = write_lines(directory / "numbers.jsonl", 90), directory / "classes.gz"
    lines = write_lines(directory / "classes.jsonl", 50).read_text(encoding="utf-8").splitlines()
    lines[20:20] = ["{", '{"x": [null]}']
    classes.write_bytes(gzip.compress("\n".join(lines).encode()))
    table = write_table(directory / "table.csv", 40)
    jobs = (table, TABLE), (classes, CLASSES), ("-", NUMBERS | {"standard_input": str(numbers)})
    for i, (source, options) in enumerate(jobs):
        (directory / str(i)).mkdir()
        yield source, directory / str(i), num_kills, options


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize(
    ("num_jobs", "num_kills"), [(1, 1), pytest.param(3, 34, marks=pytest.mark.thorough)], ids=["a table", "all sources"]
)
def test_streams_killed_at_random_moments_end_as_ones_that_were_not(tmp_path, num_jobs, num_kills):
    pytest.importorskip("river")
    counted = forked_kills(*list(jobs_of_all_sources(tmp_path, num_kills))[:num_jobs])
    assert len(counted) == num_jobs
    assert min(counted) >= num_kills


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("num_signals", [2, pytest.param(200, marks=pytest.mark.thorough)])
def test_streams_that_are_asked_to_end_at_random_moments_lose_nothing(tmp_path, num_signals):
    table = write_table(tmp_path / "table.csv", 40)
    options = {name: value for name, value in TABLE.items() if name != "drift_detector"} | {"signal": "SIGTERM"}
    (counted,) = forked_kills((table, tmp_path, num_signals, options))
    assert counted >= num_signals


@pytest.mark.slow
def test_a_stream_that_waits_for_rows_writes_its_checkpoint_when_it_is_asked_to_end(tmp_path):
    lines = write_lines(tmp_path / "data.jsonl", 30).read_bytes().splitlines(keepends=True)
    checkpoint, output = tmp_path / "keep", tmp_path / "predictions"
    options = ["-", "--target", "y", "--warmup", "8", "--refit", "never", "--first-rows", "10", "--quiet"]
    files = ["--output", output, "--checkpoint", checkpoint, "--checkpoint-every", "1000"]
    with subprocess.Popen([*COMMAND, *options, *files], stdin=subprocess.PIPE) as process:
        process.stdin.writelines(lines)
        process.stdin.flush()
        wait_for_lines(process, output, 30)
        time.sleep(0.1)  # for the stream to learn the last row and wait for another one
        process.terminate()
        assert process.wait(timeout=60) == 143
    assert sg.load(checkpoint).num_rows == 30


@pytest.mark.slow
def test_a_file_that_grows_is_followed_and_ends_as_one_that_was_whole(tmp_path):
    lines = write_lines(tmp_path / "whole.jsonl", 40).read_bytes().splitlines(keepends=True)
    growing, output, checkpoint = tmp_path / "growing.jsonl", tmp_path / "followed", tmp_path / "keep"
    options = ["--target", "y", "--warmup", "8", "--refit", "never", "--first-rows", "10", "--quiet"]
    files = ["--output", str(output), "--checkpoint", str(checkpoint), "--resume"]
    growing.write_bytes(b"".join(lines[:12]))
    with subprocess.Popen([*COMMAND, str(growing), *options, *files, "--follow"]) as process:
        for number, start in enumerate(range(12, 36, 6)):
            with growing.open("ab") as file:
                file.write(b"".join(lines[start : start + 6])[: -5 if number == 3 else None])
            whole = start + 5 if number == 3 else start + 6
            wait_for_lines(process, output, whole)
        time.sleep(0.3)  # while half a line is there
        assert output.read_bytes().count(b"\n") == 35
        process.terminate()
        assert process.wait(timeout=60) == 143
    growing.write_bytes(b"".join(lines))
    for source, written in ((growing, files), (tmp_path / "whole.jsonl", ["--output", str(tmp_path / "once")])):
        done = CliRunner().invoke(app, ["stream", str(source), *options, *written])
        assert done.exit_code == 0, done.output
    assert output.read_bytes() == (tmp_path / "once").read_bytes()


@pytest.mark.slow
def test_a_second_stream_on_one_checkpoint_is_refused_and_the_first_loses_nothing(tmp_path):
    source = write_lines(tmp_path / "data.jsonl", 30)
    checkpoint = tmp_path / "keep"
    options = {"target": "y", "warmup": 8, "refit": "never", "is_quiet": True, "checkpoint": checkpoint}
    with locked(checkpoint, patience=0.0), pytest.raises(SaveError, match="Another command is at work"):
        run_stream(StreamOptions(source=str(source), output=str(tmp_path / "one"), **options))
    run_stream(StreamOptions(source=str(source), output=str(tmp_path / "one"), **options))
    assert (tmp_path / "one").read_bytes().count(b"\n") == 30


@pytest.mark.slow
@pytest.mark.thorough
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
    whole = CliRunner().invoke(
        app, ["stream", *options, "--output", str(tmp_path / "whole")], input=source.read_bytes()
    )
    assert whole.exit_code == 0, whole.output
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
