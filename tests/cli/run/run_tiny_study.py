"""`streamgp`, with the tiny study in place of all others."""

from streamgp.cli.app import main
from streamgp.testing.tiny_figure import tiny_registry

if __name__ == "__main__":
    with tiny_registry():
        main()
