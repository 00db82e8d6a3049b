"""The service of a stream: JSON over HTTP."""

import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from matplotlib.figure import Figure
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from starlette.responses import JSONResponse, Response

from streamgp.errors import SaveError, StreamGPError
from streamgp.serve.pages import add_static_routes, picture, render
from streamgp.serve.stream import GoneError, ServedStream

__all__ = ["make_stream_app"]

# Rows of one request; larger keeps others waiting longer.
_MOST_ROWS = 10_000

# Larger numbers are slips, whose squares would overflow in a model.
_LARGEST = 1e50

Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0.0, lt=1.0)]
Cell = Number | bool | Annotated[str, StringConstraints(max_length=10_000)] | None
Row = dict[str, Cell] | list[Cell]
RowList = Annotated[list[Row], Field(min_length=1, max_length=_MOST_ROWS)]


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rows: RowList


class PredictRequest(_Question):
    """Rows that are next, as objects with values by name or as lists of values."""

    quantiles: Annotated[list[Probability], Field(max_length=100)] = [0.05, 0.95]
    ticket: Annotated[bool, Field(description="Whether the targets of these rows will come.")] = True


class LearnRequest(BaseModel):
    """Targets of rows: those of a ticket, or rows that come along; null is a target that will never come.

    Rows of objects may have their targets among their values instead.
    """

    model_config = ConfigDict(extra="forbid")
    targets: Annotated[list[Cell], Field(min_length=1, max_length=_MOST_ROWS)] | None = None
    ticket: Annotated[str, StringConstraints(max_length=100)] | None = None
    rows: RowList | None = None

    @model_validator(mode="after")
    def _has_one(self) -> "LearnRequest":
        if (self.ticket is None) == (self.rows is None):
            raise ValueError("send either a ticket or rows")
        if self.ticket is not None and self.targets is None:
            raise ValueError("send the targets of the ticket")
        return self


class ExplainRequest(_Question):
    """Rows to be explained."""

    rows: Annotated[list[Row], Field(min_length=1, max_length=100)]


class _Meters:
    """Meters that Prometheus reads."""

    def __init__(self, stream: ServedStream) -> None:
        self.registry = CollectorRegistry()
        self.predicted = Counter("streamgp_rows_predicted", "Rows predicted.", registry=self.registry)
        self.learned = Counter("streamgp_rows_learned", "Rows learned.", registry=self.registry)
        self.refused = Counter("streamgp_requests_refused", "Requests refused.", ["code"], registry=self.registry)
        self.seconds = Histogram(
            "streamgp_request_seconds", "Time of a request.", ["route"], registry=self.registry, buckets=_BUCKETS
        )
        for name, text, read in (
            ("known_rows", "Rows that the model has learned.", lambda: stream.model.num_learned),
            ("open_rows", "Rows that wait for their targets.", lambda: stream.num_open),
            ("rows_since_checkpoint", "Rows that only the journal has.", lambda: stream.num_since_checkpoint),
        ):
            Gauge(f"streamgp_{name}", text, registry=self.registry).set_function(read)


_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


def make_stream_app(stream: ServedStream) -> FastAPI:
    """Make the service of a stream, which is closed when the service ends."""
    meters = _Meters(stream)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        keeper = _Keeper(stream)
        try:
            yield
        finally:
            keeper.stop()
            stream.close()

    app = FastAPI(title=stream.path.name, lifespan=lifespan, docs_url=None, redoc_url=None)

    add_static_routes(app)

    @app.middleware("http")
    async def measure(request: Request, answer: Callable[[Request], Any]) -> Response:
        began = time.perf_counter()
        response: Response = await answer(request)
        route = request.scope.get("route")
        meters.seconds.labels(getattr(route, "path", "none")).observe(time.perf_counter() - began)
        if response.status_code >= 400:
            meters.refused.labels(str(response.status_code)).inc()
        return response

    # Plain functions, which Starlette runs in threads: nothing computes in the loop that listens.
    @app.post("/predict")
    def predict(asked: PredictRequest) -> dict[str, Any]:
        """Predict rows; their targets are sent to /learn, with the ticket."""
        ticket, said = stream.predict(asked.rows, quantiles=asked.quantiles, has_ticket=asked.ticket)
        meters.predicted.inc(len(asked.rows))
        return {"predictions": said} if ticket is None else {"ticket": ticket, "predictions": said}

    @app.post("/learn")
    def learn(asked: LearnRequest) -> dict[str, int]:
        """Learn targets. What is acknowledged is on the disk."""
        num_learned = stream.learn(targets=asked.targets, ticket=asked.ticket, rows=asked.rows)
        meters.learned.inc(len(asked.targets or asked.rows or ()))
        return {"known_rows": num_learned}

    @app.post("/explain")
    def explain(asked: ExplainRequest) -> list[dict[str, Any]]:
        """Say why rows are predicted as they are."""
        return stream.explain(asked.rows)

    @app.get("/report")
    def report() -> dict[str, Any]:
        """Say how good predictions were, each before its row was learned."""
        found = stream.report()
        finite = {name: value if abs(value) < float("inf") else None for name, value in found.metrics.items()}
        return {"rows": found.num_rows, "known_rows": stream.model.num_learned, "metrics": finite}

    @app.get("/", include_in_schema=False)
    def show(request: Request) -> Response:
        found = stream.report() if stream.model.num_learned else None
        return render(
            "stream.html",
            title=stream.path.name,
            known_rows=stream.model.num_learned,
            open_rows=stream.num_open,
            num_rows=0 if found is None else found.num_rows,
            metrics={} if found is None else {name: f"{value:.4g}" for name, value in found.metrics.items()},
            address=request.base_url,
            asked=json.dumps({"rows": [stream.model.example]}),
        )

    @app.get("/report.svg", include_in_schema=False)
    def draw() -> Response:
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        stream.report().plot(figure.subplots(1, 2))
        return picture(figure)

    @app.get("/metrics")
    def metrics() -> Response:
        """Return counters and times in Prometheus' text format."""
        return Response(generate_latest(meters.registry), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(RequestValidationError)
    async def refuse_invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:4])
        return JSONResponse({"error": f"{where or 'The request'}: {first['msg']}."[:500]}, status_code=422)

    @app.exception_handler(GoneError)
    async def refuse_ticket(request: Request, error: GoneError) -> Response:
        return JSONResponse({"error": str(error)}, status_code=410)

    @app.exception_handler(SaveError)
    async def refuse_for_the_disk(request: Request, error: SaveError) -> Response:
        return JSONResponse({"error": str(error)}, status_code=507)

    async def refuse(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status_code=422)

    for kind in (StreamGPError, ValueError, TypeError):
        app.add_exception_handler(kind, refuse)
    return app


class _Keeper:
    """Writes checkpoints that are due, in a thread of its own."""

    def __init__(self, stream: ServedStream) -> None:
        self._stream, self._is_over = stream, threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamgp-checkpoints", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for a checkpoint that is being written, and write no more."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(0.5):
            if self._stream.is_checkpoint_due:
                self._stream.checkpoint()
