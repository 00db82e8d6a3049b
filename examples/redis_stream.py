"""Redis streams: what is read from `rows` is predicted or learned, and only then acknowledged.

Run it beside a service and a server: python redis_stream.py http://127.0.0.1:8000/ redis://127.0.0.1:6379
"""

import json
import sys

import redis
from service import send

address, server = sys.argv[1], redis.Redis.from_url(sys.argv[2])
if not server.exists("rows") or not server.xinfo_groups("rows"):
    server.xgroup_create("rows", "streamgp", id="0", mkstream=True)

seen = "0"  # first what was read before and never acknowledged, then what is new
while True:
    found = server.xreadgroup("streamgp", "one", {"rows": seen}, count=20, block=1000)
    entries = found[0][1] if found else []
    seen = seen if entries else ">"
    for name, fields in entries:
        event = json.loads(fields[b"event"])
        said = send(address, "learn" if "targets" in event else "predict", event)
        server.xadd("answers", {"of": name, "said": json.dumps(said)})
        server.xack("rows", "streamgp", name)
