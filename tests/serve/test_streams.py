"""A stream behind HTTP: what is acknowledged is known, whatever happens."""

import json
import shutil
import time

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")

import streamgp as sg
from streamgp.errors import FileFormatError, SaveError
from streamgp.serve.journal import Journal
from streamgp.serve.stream import GoneError, ServedStream
from streamgp.storage import load
from streamgp.testing.tolerances import judgement, within

ROWS = [[0.1, 0.2], [0.3, 0.4]]


def killed(stream: ServedStream) -> None:
    """Let go of the file without a checkpoint, as the system does with a process that is killed."""
    stream._stack.close()


def means(stream: ServedStream) -> list[float]:
    return [one["mean"] for one in stream.model.predict(ROWS, [])]


def test_predictions_have_a_ticket_by_which_targets_are_learned(visit, sensor):
    with visit(sensor) as client:
        said = client.post("/predict", json={"rows": ROWS, "quantiles": [0.25, 0.75]}).json()
        assert len(said["predictions"]) == 2
        one = said["predictions"][0]
        assert one["quantiles"]["0.25"] < one["mean"] < one["quantiles"]["0.75"]
        assert client.post("/learn", json={"ticket": said["ticket"], "targets": [0.5, 0.6]}).json() == {
            "known_rows": 17
        }
        again = client.post("/learn", json={"ticket": said["ticket"], "targets": [0.5, None]})
        assert again.status_code == 410
        assert "learned already" in again.json()["error"]
        assert client.get("/report").json()["known_rows"] == 17
        assert b"streamgp_known_rows 17.0" in client.get("/metrics").content
        experts = client.post("/explain", json={"rows": ROWS}).json()[0]["experts"]
        assert sum(one["weight"] for one in experts) == pytest.approx(1.0)
    assert load(sensor).num_seen_ == 17  # the file is the checkpoint, which Python reads as before


def test_predictions_are_those_of_the_model(visit, sensor):
    mean, deviation = load(sensor).predict(ROWS, return_std=True)
    with visit(sensor) as client:
        said = client.post("/predict", json={"rows": ROWS, "ticket": False}).json()
    assert "ticket" not in said
    assert [one["mean"] for one in said["predictions"]] == pytest.approx(mean.tolist())
    assert [one["std"] for one in said["predictions"]] == pytest.approx(deviation.tolist())


def test_a_kill_loses_nothing_that_was_acknowledged(sensor):
    stream = ServedStream(sensor, checkpoint_every=3)
    for i in range(10):
        ticket, _ = stream.predict(ROWS, has_ticket=True)
        if i % 3:
            stream.learn(ticket=ticket, targets=[0.1 * i, 0.2])
        else:
            stream.learn(rows=ROWS[:1], targets=[0.3])
        if i == 4:
            deadline = time.monotonic() + 60.0
            while stream.model.is_refitting and time.monotonic() < deadline:
                time.sleep(0.01)  # a checkpoint waits for a refit in the background
            assert stream.is_checkpoint_due
            stream.checkpoint()
            assert not stream.is_checkpoint_due
    known, open_ = stream.model.num_learned, stream.num_open
    mean = means(stream)
    killed(stream)
    again = ServedStream(sensor)
    assert (again.model.num_learned, again.num_open) == (known, open_)
    # Tickets that were open at the checkpoint were expected anew; but for that, it is the same.
    assert means(again) == pytest.approx(mean, **within(judgement(absolute=0.1)))
    again.learn(ticket="1", targets=[None, 0.5])
    assert means(again) != pytest.approx(mean, **within(judgement(absolute=1e-6)))
    killed(again)


@pytest.mark.parametrize("lost", range(1, 60, 7))
def test_a_line_that_was_cut_short_is_dropped_and_the_others_are_kept(sensor, lost):
    stream = ServedStream(sensor)
    stream.learn(rows=ROWS, targets=[0.1, 0.2])
    stream.learn(rows=ROWS, targets=[0.3, 0.4])
    killed(stream)
    journal = sensor.with_name("sensor.sgp.journal")
    content = journal.read_bytes()
    journal.write_bytes(content[:-lost])
    again = ServedStream(sensor)
    assert again.model.num_learned == 17
    again.learn(rows=ROWS, targets=[0.3, 0.4])
    killed(again)
    assert journal.read_bytes() == content


def test_a_kill_between_the_two_renames_of_a_checkpoint_loses_nothing(sensor, monkeypatch):
    stream = ServedStream(sensor)
    ticket, _ = stream.predict(ROWS, has_ticket=True)
    stream.learn(rows=ROWS, targets=[0.1, 0.2])

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "streamgp.serve.journal.Path.replace",
        lambda path, to: shutil.move(path, to) if "journal" not in path.name else stop(),
    )
    with pytest.raises(KeyboardInterrupt):
        stream.checkpoint()
    monkeypatch.undo()
    killed(stream)
    again = ServedStream(sensor)
    assert (again.model.num_learned, again.num_open) == (17, 2)
    again.learn(ticket=ticket, targets=[0.1, 0.2])
    killed(again)


def test_a_journal_of_another_file_and_a_damaged_one_are_refused(sensor, learned):
    stream = ServedStream(sensor)
    stream.learn(rows=ROWS, targets=[0.1, 0.2])
    killed(stream)
    journal = sensor.with_name("sensor.sgp.journal")
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b"0.1", b"0.7", 1))
    with pytest.raises(FileFormatError, match="is damaged: one of its lines"):
        ServedStream(sensor)
    journal.write_bytes(content)
    load(sensor).partial_fit(ROWS, [1.0, 2.0]).save(sensor)
    with pytest.raises(FileFormatError, match="learned after another version"):
        ServedStream(sensor)


def test_only_one_service_has_a_file(sensor):
    stream = ServedStream(sensor)
    with pytest.raises(SaveError, match="Another command is at work"):
        ServedStream(sensor)
    killed(stream)


def test_a_full_disk_refuses_rows_and_learns_none(sensor, monkeypatch):
    stream = ServedStream(sensor)

    class Full:
        def write(self, line):
            raise OSError(28, "No space left on device")

        def __getattr__(self, name):
            return getattr(file, name)

    file = stream._journal._file
    monkeypatch.setattr(stream._journal, "_file", Full())
    with pytest.raises(SaveError, match="Make room on the disk"):
        stream.learn(rows=ROWS, targets=[0.1, 0.2])
    monkeypatch.undo()
    assert stream.model.num_learned == 15
    stream.learn(rows=ROWS, targets=[0.1, 0.2])
    killed(stream)
    again = ServedStream(sensor)
    assert again.model.num_learned == 17
    killed(again)


def test_a_refused_row_is_not_in_the_journal(sensor):
    stream = ServedStream(sensor)
    size = stream._journal.size
    for rows, targets in (([[0.1]], [1.0]), (ROWS, [1.0]), (ROWS, ["a", "b"]), ([{"a": 1.0}], [1.0])):
        with pytest.raises((ValueError, TypeError)):
            stream.learn(rows=rows, targets=targets)
    with pytest.raises(GoneError, match="There is no ticket"):
        stream.learn(ticket="77", targets=[1.0])
    assert (stream._journal.size, stream.model.num_learned) == (size, 15)
    killed(stream)


def test_rows_that_wait_too_long_are_forgotten(sensor, monkeypatch):
    monkeypatch.setattr("streamgp.serve.stream._MOST_OPEN", 5)
    stream = ServedStream(sensor)
    tickets = [stream.predict(ROWS, has_ticket=True)[0] for _ in range(4)]
    assert stream.num_open == 4
    with pytest.raises(GoneError, match="waited too long"):
        stream.learn(ticket=tickets[1], targets=[0.1, 0.2])
    stream.learn(ticket=tickets[2], targets=[0.1, 0.2])
    killed(stream)


def test_classes_are_predicted_with_their_probabilities(visit, tmp_path):
    path = tmp_path / "machine.sgp"
    X = np.random.default_rng(0).random((30, 1))
    sg.StreamingGPClassifier(num_inducing=5).partial_fit(X, np.where(X[:, 0] > 0.5, "up", "down")).save(path)
    with visit(path) as client:
        said = client.post("/predict", json={"rows": [[0.9]]}).json()
        assert said["predictions"][0]["label"] == "up"
        assert sum(said["predictions"][0]["probabilities"].values()) == pytest.approx(1.0)
        assert client.post("/learn", json={"ticket": said["ticket"], "targets": ["up"]}).json()["known_rows"] == 31
        assert client.get("/").status_code == 200


def test_rows_may_have_names(visit, tmp_path):
    import pandas as pd

    path = tmp_path / "named.sgp"
    table = pd.DataFrame(np.random.default_rng(0).random((12, 2)), columns=["load", "wind"])
    sg.StreamingGPRegressor(num_inducing=5).partial_fit(table, table["load"]).save(path)
    with visit(path) as client:
        one = client.post("/predict", json={"rows": [{"wind": 0.1, "load": 0.9}], "ticket": False}).json()
        other = client.post("/predict", json={"rows": [{"load": 0.9, "wind": 0.1}], "ticket": False}).json()
        assert one == other
        refused = client.post("/predict", json={"rows": [{"load": 0.9}]})
        assert refused.status_code == 422
        assert refused.json()["error"] == "Rows of this stream are objects with load, wind, and nothing else."
        assert "load" in client.get("/").text


def test_the_page_and_its_picture_are_there(visit, sensor):
    with visit(sensor) as client:
        assert "curl http://127.0.0.1/predict" in client.get("/").text
        assert client.get("/report.svg").headers["content-type"] == "image/svg+xml"
        assert client.get("/openapi.json").json()["paths"].keys() >= {"/predict", "/learn", "/explain", "/report"}


def test_the_journal_begins_with_the_file_that_it_follows(sensor):
    journal, events = Journal.open(sensor.with_name("a.journal"), sensor)
    assert events == []
    journal.append({"text": "ü \ud800"})
    journal.close()
    journal, events = Journal.open(sensor.with_name("a.journal"), sensor)
    journal.close()
    assert events == [{"text": "ü \ud800"}]
    assert json.loads(sensor.with_name("a.journal").read_bytes().splitlines()[0][9:])


def test_rows_of_a_stream_have_dates_and_words_and_their_targets_among_them(visit, tmp_path):
    path = tmp_path / "power.sgp"
    rows = [{"when": f"2024-03-01 {hour:02d}:00", "city": ["Oslo", "Molde"][hour % 2]} for hour in range(24)]
    stream = sg.Stream(target="power", num_inducing=5)
    stream.learn([{**row, "power": float(hour)} for hour, row in enumerate(rows)])
    stream.save(path)
    with visit(path) as client:
        said = client.post("/predict", json={"rows": rows[:2]}).json()
        assert client.post("/learn", json={"ticket": said["ticket"], "targets": [1.0, 2.0]}).json() == {
            "known_rows": 26
        }
        inside = [{**rows[3], "power": 3.0}]
        assert client.post("/learn", json={"rows": inside}).json() == {"known_rows": 27}
        assert client.post("/learn", json={"rows": rows[4:5], "targets": [4.0]}).json() == {"known_rows": 28}
        assert client.post("/learn", json={"rows": [[1.0]], "targets": [4.0]}).status_code == 422
        assert client.get("/").status_code == 200
    assert sg.load(path).num_seen_ == 28


def test_a_stream_in_service_refits_in_the_background(sensor):
    stream = ServedStream(sensor)
    assert stream.model.served.refit == "background"
    stream.close()
