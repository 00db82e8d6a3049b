"""Run one unit in a process of its own."""

import multiprocessing
import os
import sys
from multiprocessing.connection import Connection

from paper.engine.execution import Failure, UnitTask, execute
from paper.schema.record import UnitRecord

__all__ = ["execute_apart"]

# Seconds between two looks at whether anybody still waits for the result.
_INTERVAL = 1.0


def execute_apart(task: UnitTask) -> UnitRecord | Failure:
    """Run a unit in a process that is made for it, and wait for it.

    Nothing that a unit changes, imports or leaves in memory reaches the next one, and a unit that is killed, for
    example for lack of memory, is a failure like any other. If the process that asked for this one is gone, the unit
    ends.
    """
    # A worker of an engine has one thread and has imported what a unit needs: on Linux its copy is safe, and starts at
    # once.
    context = multiprocessing.get_context("fork") if sys.platform == "linux" else multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(sender, task), daemon=True)
    process.start()
    sender.close()
    parent = multiprocessing.parent_process()
    owner = os.getppid() if parent is None else parent.pid
    try:
        while not receiver.poll(_INTERVAL):
            if os.getppid() != owner:
                process.kill()
                os._exit(1)
        result: UnitRecord | Failure = receiver.recv()
    except EOFError:
        process.join()
        return Failure(task.unit, f"Its process ended with code {process.exitcode}, without a result.")
    finally:
        receiver.close()
        process.kill()
        process.join()
    return result


def _send_result(sender: Connection, task: UnitTask) -> None:
    sender.send(execute(task))
    sender.close()
