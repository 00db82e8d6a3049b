"""The page of a study or a survey: several people, one file, nothing lost."""

import threading

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

pytest.importorskip("fastapi", reason="needs the extra serve")

from tests.serve.conftest import Page, issues, opened

import streamgp as sg
from streamgp.cli.app import app
from streamgp.cli.optimize.notebook import open_notebook


def test_what_is_told_is_what_the_command_line_reads(page, study):
    first, second = page.ask(2)
    assert page.tell(first, "61.5").url.query == b"done=told"
    assert page.tell(second, "", **{f"{second}.failed": "on"}).status_code == 200
    shown = CliRunner().invoke(app, ["optimize", "show", str(study), "--json"]).stdout
    assert '"taste": 61.5' in shown
    assert '"taste": null' in shown
    assert len(page.experiments()) == 2
    assert page.suggested() == []


def test_the_page_shows_what_the_command_line_asked_for(page, study):
    CliRunner().invoke(app, ["optimize", "ask", str(study), "--number", "3"])
    assert len(page.suggested()) == 3
    table = page.client.get("/suggestions.csv").text
    written = (study.parent / "coffee.ask1.csv").read_text().splitlines()
    assert table.splitlines() == [line.rpartition(",")[0] for line in written]  # all but why


def test_wrong_input_is_answered_beside_its_field_and_changes_nothing(page):
    (key,) = page.ask()
    answer = page.tell(key, "tasty", **{"new.p0": "300", "new.y0": "1"})
    assert answer.status_code == 422
    assert issues(answer) == [
        "the outcome &#39;taste&#39; is &#39;tasty&#39; and not a number. Write a decimal point, &lt;0.5 for a bound, "
        "and failed if the evaluation failed.",
        "The parameter &#39;temperature&#39; must lie between 80 and 100, but is 300.",
        "Say what was set.",
    ]
    assert 'value="tasty"' in answer.text
    assert 'value="300"' in answer.text
    assert page.experiments() == []
    assert issues(page.post("/tell", **{f"{key}.p0": "85", f"{key}.y0": " "})) == []  # nothing came of it yet


def test_another_experiment_is_told_and_what_was_really_set(page):
    (key,) = page.ask()
    cells = {f"{key}.p0": "88.8", f"{key}.p1": "fine"}
    assert page.post("/tell", **cells, **{f"{key}.y0": "3"}).status_code == 200
    assert page.post("/tell", **{"new.p0": "99", "new.p1": "<b>coarse</b>", "new.y0": "4"}).status_code == 200
    assert page.experiments() == ["88.8,fine,3", "99,<b>coarse</b>,4"]
    assert page.suggested() == []  # the suggestion is not waited for, although something else was tried


def test_two_people_fill_in_different_rows_and_nothing_is_lost(page):
    first, second = page.ask(2)
    old, cells = page.hidden(), page.cells(second)
    page.tell(first, "1")
    answer = page.client.post("/tell", data={**old, **cells, f"{second}.y0": "2"})
    assert answer.url.query == b"done=told"
    assert sorted(row.split(",")[-1] for row in page.experiments()) == ["1", "2"]


def test_two_people_fill_in_the_same_row_and_the_second_is_told_so(page):
    (key,) = page.ask()
    old, cells = page.hidden(), page.cells(key)
    page.tell(key, "1")
    answer = page.client.post("/tell", data={**old, **cells, f"{key}.y0": "2"})
    assert answer.status_code == 422
    assert "told or left out by somebody else meanwhile. You typed" in answer.text
    assert [row.split(",")[-1] for row in page.experiments()] == ["1"]


@pytest.mark.parametrize("action", ["ask", "undo", "leave", "table", "new"])
def test_a_form_of_an_older_page_is_refused_and_keeps_what_was_typed(page, action):
    keys = page.ask(2)
    old = page.hidden()
    page.tell(keys[0], "1")
    before = page.experiments()
    data = {**old, "number": "3", "leave": keys[1], "new.p0": "88", "new.p1": "fine", "new.y0": "2"}
    answer = page.client.post("/tell" if action == "new" else f"/{action}", data=data, files={})
    assert answer.status_code == 409
    assert "Somebody has changed the experiments meanwhile" in answer.text
    assert 'value="88"' in answer.text
    assert (page.experiments(), len(page.suggested())) == (before, 1)


def test_many_at_once_lose_nothing(study):
    with opened(study) as client:
        page = Page(client)
        keys = page.ask(8)
        forms = [{**page.hidden(), **page.cells(key), f"{key}.y0": str(i)} for i, key in enumerate(keys)]
        answers = []
        workers = [
            threading.Thread(target=lambda form=form: answers.append(client.post("/tell", data=form).status_code))
            for form in forms
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert answers == [200] * 8
        assert sorted(int(row.split(",")[-1]) for row in page.experiments()) == list(range(8))


def test_undo_goes_back_step_by_step_and_stops_at_what_others_did(page, study):
    (key,) = page.ask()
    page.tell(key, "1")
    page.post("/undo")
    assert page.experiments() == []
    assert page.suggested() == [key]
    page.post("/undo")
    assert page.suggested() == []
    assert page.post("/undo").status_code == 409
    page.ask()
    with open_notebook(study, None) as notebook:
        notebook.optimizer.ask(1)
        notebook.optimizer.save(notebook.state)
    assert page.post("/undo").status_code == 409
    assert len(page.suggested()) == 2


def test_a_suggestion_can_be_left_out(page):
    keys = page.ask(2)
    assert page.post("/leave", leave=keys[0]).url.query == b"done=left"
    assert page.suggested() == keys[1:]


def test_a_table_is_read_once_and_a_wrong_one_not_at_all(page):
    table = "temperature,grind,taste\n85,fine,3\n90,fine,failed\n91,fine,\n"

    def send(text):
        return page.client.post("/table", data=page.hidden(), files={"table": ("../../x.csv", text.encode())})

    assert send(table).url.query == b"done=told"
    assert send(table).url.query == b"done=nothing"
    assert page.experiments() == ["85,fine,3", "90,fine,failed"]
    wrong = send("temperature,grind,taste\n85,fine,many\n")
    assert wrong.status_code == 422
    assert "cannot be used, so nothing was told" in wrong.text
    assert len(page.experiments()) == 2


def test_values_can_be_kept(page):
    page.post("/ask", number="5", fix0="97", fix1="")
    assert {page.cells(key)[f"{key}.p0"] for key in page.suggested()} == {"97"}
    assert page.post("/ask", number="1", fix0="300").status_code == 422
    answer = page.post("/ask", number="many")
    assert issues(answer) == ["Write a whole number from 1 to 100."]


def test_texts_of_the_study_are_escaped(page):
    page.post("/ask", number="2", fix1="<b>coarse</b>")
    text = page.client.get("/").text
    assert "<b>" not in text
    assert "&lt;b&gt;coarse&lt;/b&gt;" in text


@pytest.mark.slow
def test_pictures_and_what_is_best_are_there_once_something_is_known(page):
    assert page.client.get("/picture.svg").status_code == 404
    assert "No experiment has succeeded" in page.client.get("/summary").text
    for outcome, key in enumerate(page.ask(5)):
        page.tell(key, str(outcome))
    summary = page.client.get("/summary").text
    assert "Best experiment so far" in summary
    assert "What more experiments may gain" in summary
    assert page.client.get("/picture.svg").content.startswith(b"<?xml")


def test_a_form_from_before_a_restart_is_shown_again(page, study):
    (key,) = page.ask()
    form = {**page.hidden(), **page.cells(key), f"{key}.y0": "5"}
    with opened(study) as client:
        answer = client.post("/tell", data=form)
        assert answer.status_code == 409
        assert 'value="5"' in answer.text
        assert Page(client).tell(key, "5").status_code == 200


@pytest.fixture
def survey(tmp_path):
    path = tmp_path / "villages.sgp"
    pool = torch.from_numpy(np.random.default_rng(0).random((30, 2)))
    learner = sg.PoolLearner(
        pool, likelihood=sg.likelihoods.Binomial(20), names=[f"v{i}" for i in range(30)], num_initial=4, threshold=0.2
    )
    learner.ask(3)
    learner.save(path)
    return path


def test_a_survey_takes_positives_out_of_tests_by_name(survey):
    with opened(survey) as client:
        page = Page(client)
        first, second, _ = page.suggested()
        assert page.tell(first, "3", "20").status_code == 200
        assert issues(page.tell(second, "30", "20"))
        assert page.tell(second, "4", "25").status_code == 200
        assert page.post("/tell", **{"new.p0": "v29", "new.y0": "0", "new.y1": "10"}).status_code == 200
        assert page.post("/tell", **{"new.p0": "v77", "new.y0": "0", "new.y1": "10"}).status_code == 422
        names = [row.split(",")[0] for row in page.experiments()]
        assert [row.split(",")[1:] for row in page.experiments()] == [["3", "20"], ["4", "25"], ["0", "10"]]
        assert "v29" in names
    learner = sg.PoolLearner.load(survey)
    assert learner.y.flatten().tolist() == [3.0, 4.0, 0.0]
    assert learner.to_parts()["state"].observations.constants.flatten().tolist() == [20.0, 25.0, 10.0]


@pytest.mark.slow
def test_a_survey_has_a_map_and_goes_on(survey):
    with opened(survey) as client:
        page = Page(client)
        for positive, key in enumerate(page.suggested()):
            page.tell(key, str(positive), "20")
        page.ask(2)
        assert client.get("/picture.svg").status_code == 200
        assert "are known to be" in client.get("/summary").text or "What is known" in client.get("/summary").text
