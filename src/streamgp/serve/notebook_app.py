"""The page of a notebook: forms for people, and tables for their spreadsheets."""

import csv
import io
import re
import secrets
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from streamgp.cli.optimize.optimizing import cell, in_words
from streamgp.display import escape_formula, shown_point, with_uncertainty
from streamgp.errors import StreamGPError
from streamgp.loops import Best, ParameterSpace, PoolSpace
from streamgp.optimizers import Optimizer
from streamgp.pools import Learner
from streamgp.serve.notebooks import NEW, AbstractNotebook, ConflictError, Entry, FormError, Reading
from streamgp.serve.pages import add_static_routes, picture, render

__all__ = ["make_notebook_app"]

# Fields of a form, and suggestions at a time; larger forms are for tables.
_MOST_FIELDS, _MOST_ASKED = 5000, 100
_FIELD = re.compile(r"(new|[0-9a-f]{16})\.(failed|p\d{1,4}|y\d{1,4})")
# Texts and contents of files, by field.
Form = Mapping[str, str | bytes]

_DONE = {
    "asked": "New suggestions are below.",
    "told": "Saved. What came of it is known now.",
    "nothing": "Nothing was filled in, so nothing was saved.",
    "left": "This suggestion is left out.",
    "undone": "The last change was undone.",
}


def make_notebook_app(notebook: AbstractNotebook) -> FastAPI:
    """Make the page of a notebook."""
    app = FastAPI(title=notebook.title, docs_url=None, redoc_url=None, openapi_url=None)
    secret = secrets.token_urlsafe(24)
    add_static_routes(app)

    def page(
        said: str = "", error: str = "", form: Form | None = None, issues: Any = None, code: int = 200
    ) -> Response:
        reading = notebook.read()
        return render(
            "notebook.html",
            code,
            **_shown(reading),
            title=notebook.title,
            can_undo=notebook.can_undo,
            secret=secret,
            said=said,
            error=error,
            typed={} if form is None else form,
            issues=issues or {},
            lost=_lost(reading, form, issues or {}),
        )

    @app.get("/")
    def show(done: str = "") -> Response:
        return page(said=_DONE.get(done, ""))

    async def change(request: Request, act: Any) -> Response:
        """Do what a form asks for; what is wrong with it is said beside its fields, and nothing typed is lost."""
        async with request.form(max_files=1, max_fields=_MOST_FIELDS) as sent:
            files = {name: await one.read() for name, one in sent.items() if isinstance(one, UploadFile)}
            form = {name: one for name, one in sent.items() if isinstance(one, str)}

        def run() -> Response:
            try:
                if not secrets.compare_digest(_text(form, "secret").encode(), secret.encode()):
                    raise ConflictError("The service was started anew since this page was shown. Please send it again.")
                return RedirectResponse(f"/?done={act({**form, **files})}", status_code=303)
            except FormError as error:
                return page(error=str(error), form=form, issues=error.issues, code=422)
            except ConflictError as error:
                return page(error=str(error), form=form, code=409)
            except (StreamGPError, ValueError) as error:
                return page(error=str(error), form=form, code=422)

        return await run_in_threadpool(run)

    @app.post("/ask")
    async def ask(request: Request) -> Response:
        def act(form: Form) -> str:
            reading = notebook.read()
            fixed = {
                name: text
                for j, name in enumerate(reading.columns)
                if (text := _text(form, f"fix{j}")) and isinstance(reading.settings.space, ParameterSpace)
            }
            notebook.ask(_text(form, "version"), _number(_text(form, "number")), fixed)
            return "asked"

        return await change(request, act)

    @app.post("/tell")
    async def tell(request: Request) -> Response:
        def act(form: Form) -> str:
            entries = _entries(form, notebook.read())
            return "told" if notebook.tell(_text(form, "version"), entries) else "nothing"

        return await change(request, act)

    @app.post("/leave")
    async def leave(request: Request) -> Response:
        def act(form: Form) -> str:
            notebook.cancel(_text(form, "version"), _text(form, "leave"))
            return "left"

        return await change(request, act)

    @app.post("/undo")
    async def undo(request: Request) -> Response:
        def act(form: Form) -> str:
            notebook.undo(_text(form, "version"))
            return "undone"

        return await change(request, act)

    @app.post("/table")
    async def take_table(request: Request) -> Response:
        def act(form: Form) -> str:
            table = form.get("table", b"")
            return (
                "told"
                if notebook.take_table(_text(form, "version"), table if isinstance(table, bytes) else table.encode())
                else "nothing"
            )

        return await change(request, act)

    @app.get("/picture.svg")
    def draw() -> Response:
        if not len(notebook.read().loop.y):
            raise HTTPException(404, "There is nothing to draw yet.")
        return picture(notebook.draw())

    @app.get("/summary")
    def summary() -> Response:
        """Return what is known, as a part of the page: it may take the time of a fit."""
        return render("summary.html", tables=_tables(notebook.read()))

    @app.get("/suggestions.csv")
    def suggestions() -> Response:
        reading = notebook.read()
        rows = [[*one.cells, *reading.fields.values()] for one in reading.suggestions]
        return _csv([*reading.columns, *reading.fields], rows, f"{notebook.title}-suggestions.csv")

    @app.get("/experiments.csv")
    def experiments() -> Response:
        reading = notebook.read()
        header, rows = _results(reading)
        return _csv(header, rows, f"{notebook.title}.csv")

    return app


def _shown(reading: Reading) -> dict[str, Any]:
    """Fields of the file that the template of the page needs."""
    space, settings = reading.settings.space, reading.settings
    parameters = space.parameters if isinstance(space, ParameterSpace) else {}
    header, rows = _results(reading)
    goals = [f"{one.name}: {'high' if one.maximize else 'low'} is good" for one in settings.objectives]
    for name, one in zip(settings.names[len(settings.objectives) :], settings.constraints, strict=True):
        bounds = [] if one.lower is None else [f"at least {one.lower:g}"]
        bounds += [] if one.upper is None else [f"at most {one.upper:g}"]
        goals.append(f"{name}: {' and '.join(bounds)}")
    return {
        "kind": "Study" if isinstance(reading.loop, Optimizer) else "Survey",
        "version": reading.version,
        "notes": reading.notes,
        "goals": goals if isinstance(reading.loop, Optimizer) else [],
        "columns": reading.columns,
        "hints": [in_words(parameters[name]) if parameters else "" for name in reading.columns],
        "is_free": not isinstance(space, PoolSpace),
        "has_fixed": bool(parameters),
        "fact_names": reading.fact_names,
        "fields": reading.fields,
        "suggestions": reading.suggestions,
        "header": header,
        "results": list(enumerate(rows, start=1))[::-1],
    }


def _results(reading: Reading) -> tuple[list[str], list[list[str]]]:
    """All that was told, as texts, in order."""
    told = reading.loop.to_parts()["state"].observations
    constants = told.constants[:, 0].tolist()
    has_tests = "tested" in reading.fields
    rows = []
    for row, y, count in zip(reading.loop.observations.to_dict("records"), told.y.tolist(), constants, strict=True):
        cells = [cell(row[name]) for name in reading.columns]
        missing = "failed" if all(value != value for value in y) else ""
        outcomes = [missing if value != value else cell(value) for value in y]
        rows.append([*cells, *outcomes, *([cell(count)] if has_tests else [])])
    return [*reading.columns, *reading.fields], rows


def _tables(reading: Reading) -> list[dict[str, Any]]:
    """Tables, each with a title, of all that the model says."""
    loop = reading.loop
    if not bool(loop.y.isfinite().any()):
        return []
    if isinstance(loop, Learner):
        found = loop.report() if reading.settings.threshold is not None else repr(loop)
        return [{"title": "What is known", "text": found, "rows": []}]
    names = [one.name for one in reading.settings.objectives]
    if len(names) > 1:
        rows, front = [], loop.pareto()
        for point, mean, std in zip(front.X, front.mean.tolist(), front.std.tolist(), strict=True):
            expected = {name: with_uncertainty(m, s) for name, m, s in zip(names, mean, std, strict=True)}
            rows.append({"experiment": shown_point(point), **expected})
        return [{"title": "Best trade-offs", "text": "", "rows": rows}]
    best = loop.best()
    tables = [{"title": "Best experiment so far", "text": "", "rows": [_best_row(best, names[0])]}]
    if best.elsewhere is not None and best.elsewhere.X != best.X:
        recommended = _best_row(best.recommended, names[0])
        tables.append({"title": "What the model recommends, tried or not", "text": "", "rows": [recommended]})
    return [*tables, {"title": "What more experiments may gain", "text": str(loop.outlook()), "rows": []}]


def _best_row(best: Best, name: str) -> dict[str, str]:
    row = {"experiment": shown_point(best.X), f"{name}, expected": with_uncertainty(best.mean, best.std)}
    if best.probability_feasible < 1.0:
        row["keeps the bounds"] = f"{100.0 * best.probability_feasible:.0f} %"
    return row


def _lost(reading: Reading, form: Form | None, issues: Mapping[tuple[str, str], str]) -> list[str]:
    """Return what was typed for suggestions that are not there any more."""
    there = {one.key for one in reading.suggestions} | {NEW, "ask"}
    typed = {} if form is None else {entry.key: entry for entry in _entries(form, reading)}
    return [
        f"{sentence} You typed {', '.join([*typed[key].cells.values(), *typed[key].outcomes.values()])}."
        for (key, _), sentence in issues.items()
        if key not in there and key in typed
    ]


def _entries(form: Form, reading: Reading) -> list[Entry]:
    """Rows of the form; fields that it does not have are passed over."""
    found: dict[str, dict[str, str]] = {}
    for name, value in form.items():
        match = _FIELD.fullmatch(name)
        if match is not None and isinstance(value, str):
            found.setdefault(match[1], {})[match[2]] = value
    fields = list(reading.fields)
    entries = []
    for key, texts in found.items():
        cells = {name: texts.get(f"p{j}", "") for j, name in enumerate(reading.columns)}
        outcomes = {name: texts.get(f"y{k}", "") for k, name in enumerate(fields)}
        entry = Entry(key, cells, outcomes, "failed" in texts)
        # A number of tests that the form had from the start says nothing.
        said = {name: "" if text.strip() == reading.fields[name] else text for name, text in outcomes.items()}
        if not entry._replace(outcomes=said).is_blank:
            entries.append(entry)
    return entries


def _text(form: Form, name: str) -> str:
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= _MOST_ASKED):
        raise FormError({("ask", "number"): f"Write a whole number from 1 to {_MOST_ASKED}."})
    return int(text)


def _csv(header: list[str], rows: list[list[str]], name: str) -> Response:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([[escape_formula(one) for one in row] for row in (header, *rows)])
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    headers = {"content-disposition": f'attachment; filename="{plain}"'}
    return Response(file.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)
