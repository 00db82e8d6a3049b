"""`python -m paper`, with the tiny study in place of all others."""

from paper.commands.app import app
from paper.tests.tiny_figure import tiny_registry

if __name__ == "__main__":
    with tiny_registry():
        app()
