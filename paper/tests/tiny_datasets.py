"""Small data sets, and a server on this machine that offers their files, so that no test needs the network."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import final

from paper.datasets import DataFile, DataSet

__all__ = ["CONTENT", "DERIVED", "PACKED", "serve", "tiny_datasets"]

CONTENT = b"1,2\n3,4\n"
PACKED = gzip.compress(CONTENT, mtime=0)
DERIVED = b"3,4\n"


def tiny_datasets(address: str) -> tuple[DataSet, ...]:
    """Two data sets: `tiny`, a plain file and one that mirrors store compressed, and `made`, which is derived."""
    plain = DataFile("tiny/plain.csv", "numbers", f"{address}/plain.csv", _sha256(CONTENT))
    packed = DataFile(
        "tiny/packed.csv.gz",
        "numbers",
        f"{address}/packed.csv",
        _sha256(PACKED),
        unpacked_sha256=_sha256(CONTENT),
    )
    made = DataFile(
        "tiny/made.csv", "numbers", f"{address}/plain.csv", _sha256(DERIVED), derivation="the first row left out"
    )
    return (
        DataSet("tiny", "numbers", "2", "none stated", "", (plain, packed)),
        DataSet("made", "some of them", "1", "none stated", "", (made,)),
    )


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Offer the files of a folder to this machine; gives the address."""
    handler = partial(_QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@final
class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
