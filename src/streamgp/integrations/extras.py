"""Error of an integration that is imported without the package that it is for."""

from streamgp.errors import MissingPackageError

__all__ = ["missing_package"]


def missing_package(error: ModuleNotFoundError, extra: str) -> MissingPackageError:
    """The error for users: what is missing, and how to install it.

    Args:
        error: Raised by the import.
        extra: The extra of `streamgp` that holds the package; the integration has the same name.
    """
    return MissingPackageError(
        f"streamgp.integrations.{extra} needs the package {error.name}, which is not installed. "
        f"Install it with: pip install 'streamgp[{extra}]'",
        name=error.name,
    )
