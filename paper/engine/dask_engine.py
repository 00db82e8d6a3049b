"""Units on a Dask cluster."""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, final

from paper.engine.execution import Failure, UnitTask, execute
from paper.engine.local_engine import AbstractEngine
from paper.schema.record import UnitRecord
from paper.schema.unit import Unit
from streamgp.errors import OptionError, UnsupportedError

__all__ = ["DaskEngine"]

# How often a unit is sent again that a worker could not unpack. What a unit raises is a result, and is not tried again;
# how often it starts again when its worker is lost is the scheduler's to say (`allowed-failures`, 3 by default).
_NUM_RETRIES = 2
_CONNECT_SECONDS = 20


@final
class DaskEngine(AbstractEngine):
    """The workers of a cluster. A unit whose worker is lost starts again on another one.

    Units run inside the workers: give each worker one thread, and as many workers as there are cores.
    """

    def __init__(self, address: str) -> None:
        """Connect to a cluster.

        Args:
            address: Address of its scheduler, for example `tcp://host:8786`.

        Raises:
            UnsupportedError: If Dask is not installed.
            OptionError: If nobody answers.
        """
        self._distributed = _import_distributed()
        try:
            self._client: Any = self._distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise OptionError(
                f"No Dask scheduler answers at {address!r} ({error}). Start one with `dask scheduler`, and name its "
                "address with --dask."
            ) from error

    @property
    def num_workers(self) -> int:
        return max(1, sum(self._client.nthreads().values()))

    def run(self, tasks: Iterable[UnitTask], *, announce: Callable[[Unit], None]) -> Iterator[UnitRecord | Failure]:
        futures = {self._client.submit(execute, task, pure=False, retries=_NUM_RETRIES): task.unit for task in tasks}
        try:
            for future in self._distributed.as_completed(list(futures), loop=self._client.loop):
                yield _result(future, futures[future])
        finally:
            self._client.cancel(list(futures))
            self._client.close()


def _result(future: Any, unit: Unit) -> UnitRecord | Failure:
    error = future.exception()
    if error is None:
        result: UnitRecord | Failure = future.result()
        return result
    return Failure(unit, f"{type(error).__name__}: {error}")


def _import_distributed() -> ModuleType:
    try:
        return import_module("distributed")
    except ImportError as error:
        raise UnsupportedError(
            "--dask needs Dask, which is not installed. Install it with: pip install 'streamgp[dask]'"
        ) from error
