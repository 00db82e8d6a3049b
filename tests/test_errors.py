import inspect

import pytest

from streamgp import errors

ERRORS = [getattr(errors, name) for name in errors.__all__ if name not in ("StreamGPError", "StreamGPWarning")]


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_is_ours_and_resembles_a_builtin(error):
    assert issubclass(error, errors.StreamGPError)
    assert any(base.__module__ == "builtins" and base not in (Exception, BaseException, object) for base in error.mro())


def test_every_error_is_listed_and_described():
    defined = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert defined == set(errors.__all__)
    assert all(getattr(errors, name).__doc__ for name in defined)


def test_the_warning_is_one_for_users():
    assert issubclass(errors.StreamGPWarning, UserWarning)
