"""The recipes of the examples, with real brokers where they are installed."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")
pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = [[0.1, 0.2], [0.3, 0.4]]


@contextmanager
def running(*command: object) -> Iterator[subprocess.Popen]:
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.terminate()
        process.wait(30)


@pytest.fixture
def address(sensor) -> Iterator[str]:
    with running(sys.executable, "-m", "streamgp", "serve", sensor, "--port", 0) as service:
        yield re.search(r"http://\S+", service.stdout.readline())[0]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(ask, seconds=60.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if found := ask():
                return found
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("nothing came in time")


def known_rows(address: str) -> int:
    from urllib.request import urlopen

    with urlopen(address + "report") as answer:
        return json.load(answer)["known_rows"]


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server, for example Debian's package")
def test_rows_of_a_redis_stream_are_predicted_learned_and_acknowledged(address, tmp_path):
    redis = pytest.importorskip("redis", reason="needs the dependency group test")
    port = free_port()
    with running("redis-server", "--port", port, "--dir", tmp_path, "--save", "", "--bind", "127.0.0.1"):
        server = redis.Redis(port=port)

        def is_there():
            try:
                return server.ping()
            except redis.ConnectionError:
                return False

        wait_for(is_there)
        server.xadd("rows", {"event": json.dumps({"rows": ROWS})})
        with running(sys.executable, EXAMPLES / "redis_stream.py", address, f"redis://127.0.0.1:{port}"):
            ((_, answer),) = wait_for(lambda: server.xrange("answers"))
            ticket = json.loads(answer[b"said"])["ticket"]
            server.xadd("rows", {"event": json.dumps({"ticket": ticket, "targets": [0.1, 0.2]})})
            wait_for(lambda: known_rows(address) == 17)
            wait_for(lambda: server.xpending("rows", "streamgp")["pending"] == 0)


@pytest.mark.skipif(shutil.which("mosquitto") is None, reason="needs mosquitto, for example Debian's package")
def test_rows_of_mqtt_are_predicted_and_learned(address):
    mqtt = pytest.importorskip("paho.mqtt.client", reason="needs the dependency group test")
    port, said = free_port(), []
    with running("mosquitto", "-p", port), running(sys.executable, EXAMPLES / "mqtt.py", address, port):
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.on_message = lambda *arguments: said.append(json.loads(arguments[2].payload))
        wait_for(lambda: not client.connect("127.0.0.1", port))
        client.loop_start()
        client.subscribe("predicted", 1)

        def ask():
            client.publish("rows", json.dumps({"rows": ROWS}), qos=1)
            time.sleep(0.5)  # the recipe may not listen yet
            return said

        ticket = wait_for(ask)[0]["ticket"]
        client.publish("targets", json.dumps({"ticket": ticket, "targets": [0.1, 0.2]}), qos=1)
        wait_for(lambda: known_rows(address) == 17)
        client.disconnect()
        client.loop_stop()
