"""MQTT: predict what comes on `rows`, publish it on `predicted`, and learn what comes on `targets`.

Run it beside a service and a broker: python mqtt.py http://127.0.0.1:8000/ 1883
"""

import json
import sys

import paho.mqtt.client as mqtt
from service import send

address, port = sys.argv[1], int(sys.argv[2])


def on_message(client: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
    """Pass on `{"rows": ...}`, and later `{"ticket": ..., "targets": ...}`."""
    if message.topic == "rows":
        client.publish("predicted", json.dumps(send(address, "predict", json.loads(message.payload))), qos=1)
    else:
        send(address, "learn", json.loads(message.payload))


client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="streamgp", clean_session=False)
client.on_message = on_message
client.connect("127.0.0.1", port)
client.subscribe([("rows", 1), ("targets", 1)])
client.loop_forever()
