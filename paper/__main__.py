"""The command `python -m paper`."""

from paper.commands.app import app

__all__: list[str] = []

if __name__ == "__main__":
    app()
