"""Lets `python -m streamgp` do what the command `streamgp` does."""

from streamgp.cli.app import main

if __name__ == "__main__":
    main()
