"""From a file to a server."""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import final

from streamgp.cli.printing import say
from streamgp.errors import FileFormatError, MissingPackageError, OptionError, SaveError

try:
    import uvicorn
    from fastapi import FastAPI
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.types import ASGIApp

    from streamgp.serve.notebook_app import make_notebook_app
    from streamgp.serve.security import LOOPBACK, Guard
    from streamgp.serve.stream_app import make_stream_app
except ModuleNotFoundError as error:
    raise MissingPackageError(
        f"`streamgp serve` needs {error.name}, which is not installed. Install it with: pip install streamgp[serve]"
    ) from error

from streamgp.optimizers import Optimizer
from streamgp.pools import Learner
from streamgp.serve.models import Model
from streamgp.serve.notebooks import LoopNotebook, StudyNotebook
from streamgp.serve.stream import ServedStream
from streamgp.storage import load

__all__ = ["ServeOptions", "make_app", "run_serve"]

# Characters of a token; fewer could be guessed.
_LEAST_TOKEN = 16
# Requests at a time; larger takes more memory when many come.
_MOST_CONCURRENT = 500


@final
@dataclass(frozen=True)
class ServeOptions:
    """Options of the service: the file, the address, and who is let in.

    Attributes:
        file: What was saved.
        host: Where to listen.
        port: Its port; 0 takes one that is free.
        token: What requests must know; None for none on this machine, and for a random one elsewhere.
        checkpoint_every: Rows of a stream between two checkpoints.
        most_bytes: Of the body of a request.
    """

    file: Path
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    checkpoint_every: int = 10_000
    most_bytes: int = 8 * 2**20

    def __post_init__(self) -> None:
        """Refuse tokens that could be guessed."""
        if self.token is not None and (len(self.token) < _LEAST_TOKEN or not self.token.isascii()):
            raise OptionError(
                f"A token needs at least {_LEAST_TOKEN} plain characters, but this one has {len(self.token)}. Leave "
                "--token out for a random one."
            )

    @property
    def is_local(self) -> bool:
        """True if only this machine is let in."""
        return self.host in LOOPBACK

    @property
    def needed_token(self) -> str | None:
        """The token, drawn if there must be one and none was given."""
        return self.token if self.token is not None or self.is_local else secrets.token_urlsafe(24)


def make_app(options: ServeOptions, *, token: str | None = None) -> ASGIApp:
    """Make the application that serves a file, guards included.

    Args:
        options: What is served.
        token: What requests must know.
    """
    app = TrustedHostMiddleware(
        _unguarded(options), allowed_hosts=[*LOOPBACK, "testserver"] if options.is_local else ["*"]
    )
    return Guard(app, token=token, most_bytes=options.most_bytes)


def _unguarded(options: ServeOptions) -> FastAPI:
    path = options.file
    if path.suffix.lower() == ".toml":
        return make_notebook_app(StudyNotebook(path))
    value = load(path)
    if Model.is_known(value):
        return make_stream_app(ServedStream(path, checkpoint_every=options.checkpoint_every))
    if isinstance(value, Learner | Optimizer):
        return make_notebook_app(LoopNotebook(path))
    raise FileFormatError(
        f"{path} holds a {type(value).__name__}, which is not served. Streams, surveys, optimizers and the TOML files "
        "of studies are."
    )


def run_serve(options: ServeOptions) -> None:
    """Serve a file until the process is asked to end."""
    token = options.needed_token
    app = make_app(options, token=token)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONCURRENT,
    )
    try:
        socket = config.bind_socket()
    except (OSError, SystemExit):
        raise SaveError(f"Port {options.port} of {options.host} cannot be had. Choose another with --port.") from None
    socket.listen(config.backlog)  # a browser that follows the address at once waits, and is not refused
    address = f"http://{options.host}:{socket.getsockname()[1]}/"
    say(f"Serving {options.file} at {address}{'' if token is None else f'?token={token}'} until Ctrl-C.")
    uvicorn.Server(config).run(sockets=[socket])
