"""Parts of which all pages are made."""

from importlib import resources
from io import BytesIO
from typing import Any

from fastapi import FastAPI
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure
from starlette.responses import HTMLResponse, Response

__all__ = ["add_static_routes", "picture", "render"]

_TEMPLATES = Environment(loader=PackageLoader("streamgp.serve"), autoescape=True, undefined=StrictUndefined)
_KEPT = {"cache-control": "max-age=600"}


def render(template: str, code: int = 200, **values: Any) -> Response:
    """Fill in a template."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(**values), status_code=code)


def picture(figure: Figure) -> Response:
    """Send a figure."""
    file = BytesIO()
    figure.savefig(file, format="svg")
    return Response(file.getvalue(), media_type="image/svg+xml")


def add_static_routes(app: FastAPI) -> None:
    """Serve the two files that all pages have, and no icon, for which browsers ask."""
    folder = resources.files("streamgp.serve") / "templates"
    styles, script = (folder / "style.css").read_bytes(), (folder / "page.js").read_bytes()

    @app.get("/style.css", include_in_schema=False)
    def serve_styles() -> Response:
        return Response(styles, media_type="text/css", headers=_KEPT)

    @app.get("/page.js", include_in_schema=False)
    def serve_script() -> Response:
        return Response(script, media_type="text/javascript", headers=_KEPT)

    @app.get("/favicon.ico", include_in_schema=False)
    def serve_no_icon() -> Response:
        return Response(status_code=204, headers=_KEPT)
