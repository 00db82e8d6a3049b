"""Notebook of a study, in one file: read, changed and written by one command at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import torch

from streamgp.cli.locks import locked
from streamgp.cli.optimize.study_file import read_study
from streamgp.cli.outputs import remove_unfinished
from streamgp.errors import FileFormatError, OptionError, StreamGPError
from streamgp.loops import LoopSettings, ParameterSpace
from streamgp.loops.settings import describe_search
from streamgp.loops.state import move_state
from streamgp.optimizers import Optimizer

__all__ = ["Notebook", "open_notebook"]

# Seconds to wait for another command that is at work on the same study.
_PATIENCE = 60.0


@final
@dataclass(frozen=True, eq=False)
class Notebook:
    """A study and all that it was told.

    Attributes:
        study: The file with parameters and outcomes.
        state: The file with everything else.
        optimizer: What is known.
        notes: What a user should know of how it was read.
    """

    study: Path
    state: Path
    optimizer: Optimizer
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> LoopSettings:
        """Of the optimizer."""
        settings: LoopSettings = self.optimizer.to_parts()["settings"]
        return settings

    @property
    def space(self) -> ParameterSpace:
        """Its parameters."""
        space = self.settings.space
        assert isinstance(space, ParameterSpace)
        return space

    @property
    def num_asks(self) -> int:
        """Number of times that points were asked for."""
        return int(self.optimizer.to_parts()["state"].num_asks)


@contextmanager
def open_notebook(study: Path, state: Path | None) -> Iterator[Notebook]:
    """Read a study and its state, and keep others from changing it until the end.

    A study whose file has been changed keeps what it was told, as far as that fits.

    Args:
        study: A TOML file.
        state: By default beside the study, with the suffix `.streamgp`; begun if it is not there.
    """
    fresh = read_study(study)
    path = study.with_suffix(".streamgp") if state is None else state
    if path.resolve() == study.resolve():
        raise OptionError(f"--state {path} is the study itself. Choose another name.")
    if not path.parent.is_dir():
        raise OptionError(f"--state {path}: the directory does not exist. Choose another place.")
    with locked(path, patience=_PATIENCE):
        remove_unfinished(path)
        yield _read(study, path, fresh)


def _read(study: Path, path: Path, fresh: Optimizer) -> Notebook:
    if not path.exists():
        return Notebook(study, path, fresh)
    kept = Optimizer.load(path)
    fresh = _with_told_values(fresh, kept)
    if describe_search(kept.to_parts()["settings"]) == describe_search(fresh.to_parts()["settings"]):
        return Notebook(study, path, kept)
    note = f"{study} has been changed; what was told before was taken over."
    return Notebook(study, path, _carry_over(kept, fresh, study), (note,))


def _carry_over(kept: Optimizer, fresh: Optimizer, study: Path) -> Optimizer:
    before, settings = kept.to_parts(), fresh.to_parts()["settings"]
    try:
        names, others = before["settings"].names, settings.names
        if names != others:
            raise OptionError(f"Outcomes were {', '.join(names)}, and are {', '.join(others)} now.")
        return Optimizer.from_parts(settings, move_state(before["state"], before["settings"], settings.space))
    except StreamGPError as error:
        raise FileFormatError(
            f"{study} has been changed, and what was told before does not fit it. {error} Undo the change, or begin "
            "again with another file for --state."
        ) from None


def _with_told_values(fresh: Optimizer, kept: Optimizer) -> Optimizer:
    """A study that knows all values that were told, also those that its file does not list any more."""
    settings, before = fresh.to_parts()["settings"], kept.to_parts()
    if settings.space.column_names != before["settings"].space.column_names:
        return fresh
    points = torch.cat([before["state"].observations.points, before["state"].pending])
    space = settings.space.keeping(before["settings"].space, points)
    return Optimizer.from_parts(replace(settings, space=space), fresh.to_parts()["state"])
