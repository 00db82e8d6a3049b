"""Run a stream again and again, and kill it at random moments; started by test_stream_kills.py.

Processes are forked from this one, which has paid for the imports, those of a first run included. Each run must end
with the predictions and the checkpoint of one that was never killed. Takes and writes JSON: jobs, and the
number of kills of each.
"""

import json
import os
import random
import re
import signal
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # with a device, autograd has threads, which do not survive a fork

import torch

from streamgp.cli.stream.options import StreamOptions
from streamgp.cli.stream.streaming import run_stream


def start(options, standard_input):
    """Run the stream in a process of its own; returns its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if standard_input is not None:
            sys.stdin = standard_input.open(encoding="utf-8")
        run_stream(options)
        code = 0
    except SystemExit as stop:
        code = stop.code
    finally:
        os._exit(code)


def run_until_done(options, standard_input, draw, longest, number):
    """Kill the run after random times, until it ends by itself; returns the number of kills.

    SIGTERM ends it with a code of its own, but where it comes before the run has begun.
    """
    num_kills, before = 0, None
    while True:
        child = start(options, standard_input)
        time.sleep(draw.uniform(0.0, longest))
        os.kill(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code not in (-number, 128 + number):
            assert code == 0
            return num_kills
        assert code < 0 or number == signal.SIGTERM
        num_kills += 1
        now = options.checkpoint.read_bytes() if options.checkpoint.exists() else b""
        # Where one step takes longer than the run lives, it must live longer.
        longest, before = 1.3 * longest if now == before else longest, now


def contents(checkpoint):
    """The parts of a checkpoint, without how long its refits took."""
    with zipfile.ZipFile(checkpoint) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return {name: re.sub(rb'"seconds": [^,]+,', b"", part) for name, part in parts.items()}


def kill_repeatedly(source, directory, num_kills, arguments):
    draw, directory = random.Random(0), Path(directory)
    piped = Path(arguments.pop("standard_input")) if "standard_input" in arguments else None
    number = signal.Signals[arguments.pop("signal", "SIGKILL")]
    common = {"source": source, "is_quiet": True, "is_resumed": True, **arguments}
    whole = StreamOptions(output=str(directory / "whole"), checkpoint=directory / "whole.checkpoint", **common)
    first = {} if piped is None else {"source": str(piped)}
    run_stream(
        replace(whole, **first, limit=10, output=str(directory / "first"), checkpoint=directory / "first.checkpoint")
    )
    began = time.monotonic()
    assert os.waitpid(start(whole, piped), 0)[1] == 0
    seconds = time.monotonic() - began
    total = num_runs = 0
    while total < num_kills:
        name = directory / f"killed-{num_runs}"
        options = replace(whole, output=str(name), checkpoint=name.with_suffix(".checkpoint"))
        total += run_until_done(options, piped, draw, seconds / min(12, 3 * num_kills), number)
        assert name.read_bytes() == (directory / "whole").read_bytes()
        assert contents(options.checkpoint) == contents(whole.checkpoint)
        num_runs += 1
    return total


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.stdout.write(json.dumps([kill_repeatedly(*job) for job in json.loads(sys.argv[1])]))
