"""The errors of the library: each derives from `StreamGPError` and from the built-in it resembles."""

__all__ = [
    "ArgumentTypeError",
    "ClusterError",
    "ConvergenceError",
    "DTypeError",
    "DatasetError",
    "FileFormatError",
    "MissingPackageError",
    "NumericalError",
    "OptionError",
    "SaveError",
    "ShapeError",
    "StreamGPError",
    "StreamGPWarning",
    "SupportError",
    "UnsupportedError",
    "ValueRangeError",
]


class StreamGPError(Exception):
    """Base of every error that the library raises on purpose."""


class StreamGPWarning(UserWarning):
    """A result is usable, but something about it should be known."""


class ShapeError(StreamGPError, ValueError):
    """A tensor has the wrong number of axes or the wrong size along one."""


class ArgumentTypeError(StreamGPError, TypeError):
    """An argument is an object of the wrong kind."""


class DTypeError(ArgumentTypeError):
    """A tensor has the wrong type of number, is on the wrong device, or is not made of numbers at all."""


class ValueRangeError(StreamGPError, ValueError):
    """A number is NaN, infinite, or outside the range where it has a meaning."""


class SupportError(ValueRangeError):
    """A target lies outside the support of its likelihood."""


class OptionError(StreamGPError, ValueError):
    """An option has a value that is not one of its choices."""


class NumericalError(StreamGPError, ArithmeticError):
    """A computation left the range where its result can be trusted.

    Attributes:
        finding: What happened, without advice: a caller whose users have other arguments can add advice of its own.
    """

    def __init__(self, finding: str, *, advice: str = "") -> None:
        """Join both to a message.

        Args:
            finding: What happened.
            advice: What to do.
        """
        super().__init__(f"{finding} {advice}" if advice else finding)
        self.finding = finding


class ConvergenceError(NumericalError):
    """An iteration ended so far from its goal that its result is worthless."""


class UnsupportedError(StreamGPError, NotImplementedError):
    """The request makes sense but is not covered; the message names what is."""


class MissingPackageError(StreamGPError, ModuleNotFoundError):
    """A package that an extra of the library installs is not there; the message has the command."""


class FileFormatError(StreamGPError, ValueError):
    """A file is damaged, or was not written by this library."""


class DatasetError(StreamGPError, OSError):
    """A file of a data set can neither be found nor fetched, or is not the one that was expected."""


class SaveError(StreamGPError, OSError):
    """A file cannot be written."""


class ClusterError(StreamGPError, RuntimeError):
    """The workers of a cluster, or its scheduler, do not answer or were lost."""
