"""Ask `streamgp serve` from Python, with nothing but the standard library."""

import json
from typing import Any
from urllib.request import Request, urlopen


def send(address: str, path: str, body: Any) -> Any:
    """Post JSON to a service, such as `send("http://127.0.0.1:8000/", "predict", {"rows": [[0.1, 0.7]]})`."""
    request = Request(address + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request) as answer:
        return json.load(answer)
